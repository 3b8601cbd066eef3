package holds

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"seatcast/seatmap"
)

func takeKeys(r TakeRequest) []string {
	keys := make([]string, 0, 9+len(r.Seats))
	keys = append(keys, seatmap.SeqKey(r.Event), seatmap.BasketKey(r.Event, r.Token), seatmap.UserKey(r.Event, r.User))
	keys = holdKeys(keys, r.Event, r.Seats)
	keys = append(keys, seatmap.MapKey(r.Event), seatmap.HeldKey(r.Event), seatmap.LogKey(r.Event))
	if len(r.Areas) > 0 {
		keys = append(keys, seatmap.AreasKey(r.Event))
	}
	if r.Pass != nil {
		keys = append(keys, seatmap.RevokedKey(r.Event), seatmap.InsideKey(r.Event))
	}
	return keys
}

// takeArgs are, packed, what only a take that is granted needs, the places if
// any are asked for, and the pass if there is one; see take.lua.
func takeArgs(r TakeRequest) ([]any, error) {
	said, err := writeBody(r.asked())
	if err != nil {
		return nil, err
	}
	p := make(pack, 0, 128+48*len(r.Seats))
	p = p.text(r.Token)
	p = p.number(r.hold().Milliseconds())
	p = p.number(r.most().Milliseconds())
	p = p.text(strconv.FormatInt((r.hold() + remembered).Milliseconds(), 10))
	p = p.number(int64(r.Terms.SeatsPerUser))
	p = p.number(orAny(r.Terms.HoldsPerUser))
	p = p.number(orAny(r.Terms.HoldsPerHour))
	p = p.number(r.Terms.CoolDown.Milliseconds())
	p = p.text(writeSeats(r.Seats))
	p = p.paint(r.Seats)
	args := []any{said, []byte(p)}
	if len(r.Areas) > 0 {
		areas, err := json.Marshal(r.Areas)
		if err != nil {
			return nil, fmt.Errorf("areas of a take: %w", err)
		}
		args = append(args, areas)
	}
	if p := r.Pass; p != nil {
		if len(r.Areas) == 0 {
			args = append(args, "")
		}
		args = append(args, p.ID, p.Inside, p.Until.UnixMilli())
	}
	return args, nil
}

// pack writes MessagePack, as much of it as a script is told.
type pack []byte

func (p pack) text(s string) pack {
	if len(s) < 32 {
		return append(append(p, 0xa0|byte(len(s))), s...)
	}
	p = append(p, 0xdb)
	p = binary.BigEndian.AppendUint32(p, uint32(len(s)))
	return append(p, s...)
}

func (p pack) number(n int64) pack {
	p = append(p, 0xd3)
	return binary.BigEndian.AppendUint64(p, uint64(n))
}

// paint is what BITFIELD is told to show seats as held in a seatmap.Map.
// Neighbours within a byte of it are painted with one stroke.
func (p pack) paint(seats []int) pack {
	for len(seats) > 0 {
		i, n := seats[0], 1
		for n < len(seats) && seats[n] == i+n && (i+n)/4 == i/4 {
			n++
		}
		seats = seats[n:]
		last := (i + n - 1) ^ 3 // BITFIELD counts from the high bit
		p = p.text("SET").text("u" + strconv.Itoa(2*n)).text(strconv.Itoa(2 * last)).text(strconv.Itoa((1<<(2*n) - 1) / 3))
	}
	return p
}

// basketKeys are those of a script that touches the seats of one basket.
func basketKeys(event, token, user string, seats []int) []string {
	keys := make([]string, 0, 6+len(seats))
	keys = append(keys, seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.HeldKey(event), seatmap.LogKey(event),
		seatmap.BasketKey(event, token), seatmap.UserKey(event, user))
	return holdKeys(keys, event, seats)
}

func holdKeys(keys []string, event string, seats []int) []string {
	for _, i := range seats {
		keys = append(keys, seatmap.HoldKey(event, i))
	}
	return keys
}

func seatArgs(args []any, seats []int) []any {
	for _, i := range seats {
		args = append(args, i)
	}
	return args
}

// writeSeats is how a script is told seats, and names them in a change: with
// commas between.
func writeSeats(seats []int) string {
	b := make([]byte, 0, 6*len(seats))
	for k, i := range seats {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	return string(b)
}

func parseEach(texts []string) ([]int, error) {
	seats := make([]int, len(texts))
	for k, text := range texts {
		i, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("seats of a basket: %w", err)
		}
		seats[k] = i
	}
	return seats, nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
