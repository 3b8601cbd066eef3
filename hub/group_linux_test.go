package hub

import (
	"math/rand/v2"
	"testing"
)

// Sessions come and leave while a group is walked: each that was there at the
// beginning and still is at the end was looked at once, and knows its place.
func TestAWalkLooksAtEverybodyOnceWhoeverLeavesMeanwhile(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := &group{}
		var in []*cursor
		add := func() *cursor {
			c := &cursor{}
			g.add(c)
			in = append(in, c)
			return c
		}
		for range rng.IntN(12) {
			add()
		}
		for range 3 {
			g.at = 0
			seen := map[*cursor]int{}
			for g.at < len(g.cursors) {
				switch rng.IntN(3) {
				case 0:
					seen[g.cursors[g.at]]++
					g.at++
				case 1:
					if len(g.cursors) < 20 && rng.IntN(3) == 0 {
						add()
					}
				case 2:
					in = removeOne(g, in, rng)
				}
				checkPlaces(t, seed, g, in)
			}
			for _, c := range in {
				if seen[c] != 1 {
					t.Fatalf("seed %d: one of %d was looked at %d times", seed, len(in), seen[c])
				}
			}
			for range rng.IntN(6) { // between two walks
				in = removeOne(g, in, rng)
				checkPlaces(t, seed, g, in)
			}
			add()
		}
	}
}

func removeOne(g *group, in []*cursor, rng *rand.Rand) []*cursor {
	if len(in) == 0 {
		return in
	}
	i := rng.IntN(len(in))
	g.remove(in[i])
	return append(in[:i], in[i+1:]...)
}

func checkPlaces(t *testing.T, seed uint64, g *group, in []*cursor) {
	t.Helper()
	if len(g.cursors) != len(in) || g.at > len(g.cursors) {
		t.Fatalf("seed %d: %d in the group, %d of them walked, want %d", seed, len(g.cursors), g.at, len(in))
	}
	for i, c := range g.cursors {
		if int(c.slot) != i {
			t.Fatalf("seed %d: who is at %d believes to be at %d", seed, i, c.slot)
		}
	}
}
