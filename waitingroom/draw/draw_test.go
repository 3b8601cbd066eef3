package draw_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom/draw"
)

// crowd is n tickets, always the same ones for a seed.
func crowd(n int, seed uint64) []draw.Ticket {
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]draw.Ticket, n)
	for i := range all {
		for _, id := range []*draw.ID{&all[i].ID, &all[i].Nonce} {
			binary.BigEndian.PutUint64(id[:8], r.Uint64())
			binary.BigEndian.PutUint64(id[8:], r.Uint64())
		}
	}
	return all
}

func frozen(t testing.TB, tickets []draw.Ticket) *draw.List {
	t.Helper()
	l, err := draw.Freeze(tickets)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var closes = time.Date(2027, 3, 1, 9, 55, 0, 0, time.UTC)

// secret is the 32 bytes somebody keeps to themselves, and their SHA-256.
func secret(word string) (seed, commitment draw.Digest) {
	seed = sha256.Sum256([]byte(word))
	return seed, sha256.Sum256(seed[:])
}

// committed is a draw with a second committer, before anything is told.
func committed() (a draw.Announcement, seed draw.Digest, told []byte) {
	seed, commitment := secret("the house")
	second, theirs := secret("the notary")
	return draw.Announce(draw.Terms{Event: "final", Closes: closes, Commitment: commitment,
		External: draw.External{Kind: draw.Committer, Name: "A Notary", Commitment: &theirs}}), seed, second[:]
}

// drawn is a draw of tickets that has been held.
func drawn(t testing.TB, tickets []draw.Ticket) (draw.Record, *draw.List, []int) {
	t.Helper()
	a, seed, told := committed()
	l := frozen(t, tickets)
	r, err := draw.New(a, l, seed, told)
	if err != nil {
		t.Fatal(err)
	}
	return r, l, l.Ranks(r.Key)
}

func TestADrawIsCheckedFromWhatIsPublished(t *testing.T) {
	for _, n := range []int{0, 1, 2, 256, 257, 5000} {
		r, l, ranks := drawn(t, crowd(n, 1))
		var file bytes.Buffer
		if err := draw.Write(&file, r, l, ranks); err != nil {
			t.Fatal(err)
		}
		read, list, listed, err := draw.Read(&file)
		if err != nil {
			t.Fatalf("%d tickets: %v", n, err)
		}
		if err := read.Verify(list, listed); err != nil {
			t.Errorf("%d tickets: %v", n, err)
		}
		sorted := slices.Sorted(slices.Values(listed))
		for i, rank := range sorted {
			if rank != i+1 {
				t.Fatalf("%d tickets: rank %d is missing", n, i+1)
			}
		}
	}
}

// Worked out beside this code, with Python's hashlib and hmac.
func TestADrawIsWhatTheRuleSays(t *testing.T) {
	var tickets []draw.Ticket
	for n := range byte(5) {
		tickets = append(tickets, draw.Ticket{ID: draw.ID{n}, Nonce: draw.ID{15: n}})
	}
	r, _, ranks := drawn(t, tickets)
	if got := r.Root.String(); got != "4c175f4ea60af35dd89e372c8abd740c62cca1e1e67580075e1dd3cddab87ecc" {
		t.Errorf("root %s", got)
	}
	if got := r.Key.String(); got != "b13786d8984df1a5b0068a7a7eac9830b6f81484451f33a5ce468c8a8d71c4be" {
		t.Errorf("key %s", got)
	}
	if got := draw.Score(r.Key, tickets[0].ID); got != 657680627756150 {
		t.Errorf("score %d", got)
	}
	if want := []int{2, 3, 4, 1, 5}; !slices.Equal(ranks, want) {
		t.Errorf("ranks %v", ranks)
	}
}

func TestAShardLeadsToTheRoot(t *testing.T) {
	tickets := crowd(3000, 2)
	r, l, ranks := drawn(t, tickets)
	shards, seen := l.Shards(ranks), 0
	if len(shards) != 16 {
		t.Errorf("%d shards", len(shards))
	}
	for _, s := range shards {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var read draw.Shard
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		for n, ticket := range read.Tickets {
			seen++
			if n%50 > 0 {
				continue
			}
			if rank, err := r.Find(read, ticket.ID); err != nil || rank != ticket.Rank || draw.ShardOf(ticket.ID, r.Tickets) != s.Shard {
				t.Fatalf("shard %d, ticket %v: %d, %v", s.Shard, ticket.ID, rank, err)
			}
		}
		if _, err := r.Find(read, draw.ID{1}); !errors.Is(err, draw.ErrNotListed) {
			t.Errorf("a stranger in shard %d: %v", s.Shard, err)
		}
		other := read
		other.Shard = (s.Shard + 1) % len(shards)
		if _, err := r.Find(other, read.Tickets[0].ID); !errors.Is(err, draw.ErrRoot) {
			t.Errorf("shard %d passes for another: %v", s.Shard, err)
		}
		read.Tickets[0].Nonce[0] ^= 1
		if _, err := r.Find(read, read.Tickets[0].ID); !errors.Is(err, draw.ErrRoot) {
			t.Errorf("shard %d with another ticket: %v", s.Shard, err)
		}
	}
	if seen != len(tickets) {
		t.Errorf("%d tickets in all shards", seen)
	}
}

// round1000 is round 1000 of quicknet, as drand has published it.
var round1000 = mustHex("b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39")

func mustHex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func TestARoundOfTheBeaconIsVerified(t *testing.T) {
	sig := bytes.Clone(round1000)
	value, err := draw.Quicknet(1000).Value(sig)
	if got := hex.EncodeToString(value); err != nil || got != "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := draw.Quicknet(1001).Value(sig); !errors.Is(err, draw.ErrExternal) {
		t.Errorf("another round's: %v", err)
	}
	sig[5] ^= 1
	if _, err := draw.Quicknet(1000).Value(sig); !errors.Is(err, draw.ErrExternal) {
		t.Errorf("a forged one: %v", err)
	}
	if _, err := draw.Quicknet(1000).Value(nil); !errors.Is(err, draw.ErrExternal) {
		t.Errorf("none: %v", err)
	}
	e := draw.Quicknet(draw.Quicknet(0).RoundAfter(closes))
	if wait := e.At().Sub(closes); wait <= 0 || wait > 3*time.Second {
		t.Errorf("the next round is %v after", wait)
	}
}

// with is an announcement with another external value.
func with(a draw.Announcement, e draw.External) draw.Announcement {
	a.Terms.External = e
	return draw.Announce(a.Terms)
}

// The house that cheats, and what becomes of it.
func TestACheatingHouseIsCaught(t *testing.T) {
	tickets := crowd(2000, 3)
	friend := tickets[77].ID
	r, l, ranks := drawn(t, tickets)
	_, seed, told := committed()
	for _, c := range []struct {
		name  string
		cheat func() (draw.Record, *draw.List, []int, error)
		want  error
	}{
		{"another seed, once the external value is known", func() (draw.Record, *draw.List, []int, error) {
			for n := range 10_000 { // one that puts the friend first
				other, _ := secret(string(rune(n)))
				if k := draw.Key(other, told, l.Root()); draw.Score(k, friend) < 1<<52/uint64(l.Len()) {
					forged, err := draw.New(r.Announcement, l, other, told)
					return forged, l, l.Ranks(k), err
				}
			}
			return r, l, ranks, errors.New("ground for nothing")
		}, draw.ErrSeed},
		{"another external value", func() (draw.Record, *draw.List, []int, error) {
			other, _ := secret("a notary bought")
			forged, err := draw.New(r.Announcement, l, seed, other[:])
			return forged, l, ranks, err
		}, draw.ErrExternal},
		{"a beacon's round that is out before the list closes", func() (draw.Record, *draw.List, []int, error) {
			forged, err := draw.New(with(r.Announcement, draw.Quicknet(draw.Quicknet(0).RoundAfter(closes)-1)), l, seed, nil)
			return forged, l, ranks, err
		}, draw.ErrEarly},
		{"an old round, and that the beacon's first one is still to come", func() (draw.Record, *draw.List, []int, error) {
			e := draw.Quicknet(1000)
			e.Genesis = closes.Unix()
			forged, err := draw.New(with(r.Announcement, e), l, seed, round1000)
			return forged, l, l.Ranks(forged.Key), err
		}, draw.ErrExternal},
		{"an old round, and that there is one a year", func() (draw.Record, *draw.List, []int, error) {
			e := draw.Quicknet(1000)
			e.Period = 365 * 24 * 60 * 60
			forged, err := draw.New(with(r.Announcement, e), l, seed, round1000)
			return forged, l, l.Ranks(forged.Key), err
		}, draw.ErrExternal},
		{"a ticket added after the freeze", func() (draw.Record, *draw.List, []int, error) {
			more := frozen(t, append(slices.Clone(tickets), crowd(1, 4)...))
			return r, more, more.Ranks(r.Key), nil
		}, draw.ErrRoot},
		{"a ticket dropped after the freeze", func() (draw.Record, *draw.List, []int, error) {
			fewer := frozen(t, tickets[1:])
			return r, fewer, fewer.Ranks(r.Key), nil
		}, draw.ErrRoot},
		{"a ticket swapped for another after the freeze", func() (draw.Record, *draw.List, []int, error) {
			other := frozen(t, append(crowd(1, 5), tickets[1:]...))
			return r, other, other.Ranks(r.Key), nil
		}, draw.ErrRoot},
		{"the root of another list, with its key", func() (draw.Record, *draw.List, []int, error) {
			forged := r
			forged.Root = frozen(t, tickets[1:]).Root()
			return forged, l, ranks, nil
		}, draw.ErrRoot},
		{"a key of its own", func() (draw.Record, *draw.List, []int, error) {
			forged := r
			forged.Key[0] ^= 1
			return forged, l, l.Ranks(forged.Key), nil
		}, draw.ErrKey},
		{"two ranks swapped", func() (draw.Record, *draw.List, []int, error) {
			forged := slices.Clone(ranks)
			forged[3], forged[4] = forged[4], forged[3]
			return r, l, forged, nil
		}, draw.ErrRank},
		{"a ticket without a rank", func() (draw.Record, *draw.List, []int, error) {
			return r, l, ranks[:len(ranks)-1], nil
		}, draw.ErrRank},
	} {
		t.Run(c.name, func(t *testing.T) {
			forged, list, listed, err := c.cheat()
			if err == nil {
				err = forged.Verify(list, listed)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("it passes: %v", err)
			}
		})
	}
	if err := r.Verify(l, ranks); err != nil {
		t.Errorf("the honest one: %v", err)
	}
}

// A house that knows its seed and grinds tickets for a friend before the list
// closes gains nothing: the external value makes all of it a lottery again.
func TestGrindingBeforeTheExternalValueGainsNothing(t *testing.T) {
	seed, _ := secret("the house")
	others := crowd(100, 6)
	total, rounds := 0.0, 150
	for n := range rounds {
		// The friend's ticket that would win if the external value were what the
		// house guesses.
		guess, _ := secret("guess")
		best := draw.Ticket{}
		for k, c := range crowd(8, uint64(1000+n)) {
			key := draw.Key(seed, guess[:], frozen(t, append(slices.Clone(others), c)).Root())
			if k == 0 || draw.Score(key, c.ID) < draw.Score(key, best.ID) {
				best = c
			}
		}
		l := frozen(t, append(slices.Clone(others), best))
		beacon := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
		ranks := l.Ranks(draw.Key(seed, beacon[:], l.Root()))
		_, at, _ := l.Find(best.ID)
		total += float64(ranks[at])
	}
	// Ranks of 1 to 101, 150 times: mean 51, standard error 2.38. Seeds are
	// fixed, so this passes or fails for good.
	if mean := total / float64(rounds); math.Abs(mean-51) > 3*2.38 {
		t.Errorf("the friend's mean rank of 101 is %.1f", mean)
	}
}

// follows says how much ranks follow the order of arrival in several draws: the
// sum of Spearman's rho squared, in standard errors. Where they do not it is that
// of chi-squared with as many degrees of freedom as there are draws.
func follows(draws [][]int) (chi float64) {
	for _, ranks := range draws { // by arrival
		n, sum := float64(len(ranks)), 0.0
		for arrival, rank := range ranks {
			d := float64(rank - arrival - 1)
			sum += d * d
		}
		z := (1 - 6*sum/(n*(n*n-1))) * math.Sqrt(n-1)
		chi += z * z
	}
	return chi
}

// In the draw it does not matter when somebody came, not even when their tickets
// are in the order in which they did. A fair draw fails in one of a thousand
// choices of seeds; these are fixed, so it passes or fails for good.
func TestRankDoesNotFollowArrival(t *testing.T) {
	const fans, rounds, worst = 20_000, 10, 29.588 // 99.9 % of chi-squared with ten degrees
	inOrder := make([]draw.Ticket, fans)
	for n := range inOrder {
		binary.BigEndian.PutUint64(inOrder[n].ID[:], uint64(n))
	}
	for name, tickets := range map[string][]draw.Ticket{"tickets at random": crowd(fans, 7), "tickets in order": inOrder} {
		l := frozen(t, tickets)
		var fair, bent, sorted [][]int
		for seed := range rounds {
			house, _ := secret(fmt.Sprint("house ", seed))
			told, _ := secret(fmt.Sprint("notary ", seed))
			ranks := l.Ranks(draw.Key(house, told[:], l.Root()))
			byArrival, order, scores := make([]int, fans), make([]int, fans), make([]int, fans)
			for arrival, ticket := range tickets {
				_, at, _ := l.Find(ticket.ID)
				byArrival[arrival], order[arrival] = ranks[at], arrival+1
				scores[arrival] = 20*ranks[at] + arrival // the last is a twentieth of the line behind the first
			}
			fair, sorted = append(fair, byArrival), append(sorted, order)
			bent = append(bent, ranked(scores))
		}
		if chi := follows(fair); chi > worst {
			t.Errorf("%s: chi-squared is %.1f, and in 999 of 1,000 cases it is below %.1f", name, chi, worst)
		}
		for cheat, draws := range map[string][][]int{"in the order of arrival": sorted, "bent a little": bent} {
			if chi := follows(draws); chi <= worst {
				t.Errorf("%s: ranks %s pass with chi-squared %.1f", name, cheat, chi)
			}
		}
	}
}

// ranked are the ranks of scores, the lowest first.
func ranked(scores []int) []int {
	at := make([]int, len(scores))
	for n := range at {
		at[n] = n
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	ranks := make([]int, len(scores))
	for rank, n := range at {
		ranks[n] = rank + 1
	}
	return ranks
}

func TestATicketIsListedOnce(t *testing.T) {
	tickets := crowd(3, 8)
	if _, err := draw.Freeze(append(tickets, tickets[1])); !errors.Is(err, draw.ErrTwice) {
		t.Errorf("%v", err)
	}
}

func TestAnAnnouncementThatDiffersHasAnotherDigest(t *testing.T) {
	a, _, _ := committed()
	other := a.External
	other.Name = "Another Notary"
	b := with(a, other)
	same, _, _ := committed()
	if a.Digest() == b.Digest() || a.Digest() != same.Digest() {
		t.Error("the digest names not this announcement")
	}
}

// A release that knows more, or less, of an announcement than the one that made it
// gives it the digest that everybody's receipt has.
func TestTheDigestIsOfTheTextThatWasPublished(t *testing.T) {
	a, _, _ := committed()
	text := strings.Replace(a.Text(), `"event":`, `"venue":"a hall","event":`, 1)
	var read draw.Announcement
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	if read.Event != "final" || read.Digest() != sha256.Sum256([]byte(text)) || read.Text() != text {
		t.Errorf("%+v has digest %v", read, read.Digest())
	}
	r, l, ranks := drawn(t, crowd(3, 1))
	r.Announcement = read
	var file bytes.Buffer
	if err := draw.Write(&file, r, l, ranks); err != nil {
		t.Fatal(err)
	}
	again, _, _, err := draw.Read(&file)
	if err != nil || again.Announcement.Digest() != read.Digest() {
		t.Errorf("out of the file it has digest %v, %v", again.Announcement.Digest(), err)
	}
}

func TestOfNoOtherBeaconIsItKnownWhoRunsIt(t *testing.T) {
	e := draw.Quicknet(5)
	other := e
	other.PublicKey = bytes.Clone(e.PublicKey)
	other.PublicKey[7] ^= 1
	if !e.Known() || other.Known() || (draw.External{Kind: draw.None}).Known() {
		t.Error("one is taken for the other")
	}
}

func TestWhatIsNoDrawIsRefused(t *testing.T) {
	r, l, ranks := drawn(t, crowd(2, 9))
	var file bytes.Buffer
	if err := draw.Write(&file, r, l, ranks); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(file.String(), "\n")
	for name, text := range map[string]string{
		"nothing":         "",
		"no record":       strings.Join(lines[1:], ""),
		"a line too long": lines[0] + `["AAAAAAAAAAAAAAAAAAAAAA","AAAAAAAAAAAAAAAAAAAAAA",1,2]`,
		"a short ticket":  lines[0] + `["AAAA","AAAAAAAAAAAAAAAAAAAAAA",1]`,
		"twice":           lines[0] + lines[1] + lines[1],
		"cut off":         file.String()[:file.Len()-5],
	} {
		if _, _, _, err := draw.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	tickets := crowd(200_000, 10)
	a, seed, told := committed()
	for b.Loop() {
		l := frozen(b, tickets)
		r, err := draw.New(a, l, seed, told)
		if err != nil {
			b.Fatal(err)
		}
		l.Shards(l.Ranks(r.Key))
	}
}
