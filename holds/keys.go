package holds

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"seatcast/seatmap"
)

func takeKeys(r TakeRequest) []string {
	keys := make([]string, 0, 7+len(r.Seats))
	keys = append(keys, seatmap.SeqKey(r.Event), seatmap.MapKey(r.Event), seatmap.HeldKey(r.Event), seatmap.LogKey(r.Event),
		seatmap.BasketKey(r.Event, r.Token), seatmap.UserKey(r.Event, r.User), seatmap.AreasKey(r.Event))
	return holdKeys(keys, r.Event, r.Seats)
}

// takeArgs are the token and, packed, what only a take that is granted needs;
// see take.lua.
func takeArgs(r TakeRequest) ([]any, error) {
	areas, err := writeAreas(r.Areas)
	if err != nil {
		return nil, err
	}
	p := make(pack, 0, 160+len(r.Quote)+64*len(r.Seats))
	p = p.text(r.User)
	p = p.number(r.hold().Milliseconds())
	p = p.number(r.most().Milliseconds())
	p = p.number(int64(r.Terms.SeatsPerUser))
	p = p.text(r.Hash).text(string(r.Quote)).text(areas).text(writeSeats(r.Seats))
	p = p.array(len(r.Seats))
	for _, i := range r.Seats {
		p = p.text(strconv.Itoa(i))
	}
	for _, i := range r.Seats {
		p = p.text("SET").text("u2").text(spot(i)).text("1")
	}
	return []any{r.Token, []byte(p)}, nil
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

func (p pack) array(n int) pack {
	p = append(p, 0xdd)
	return binary.BigEndian.AppendUint32(p, uint32(n))
}

// spot is where BITFIELD finds seat i, so that the string reads as a
// seatmap.Map.
func spot(i int) string { return "#" + strconv.Itoa(i^3) }

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

// writeSeats is how a basket and a change name seats: with commas between.
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

func parseSeats(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	return parseEach(strings.Split(s, ","))
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

func writeAreas(areas map[string]int) (string, error) {
	if len(areas) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(areas)
	if err != nil {
		return "", fmt.Errorf("areas of a basket: %w", err)
	}
	return string(b), nil
}

func parseAreas(s string) (map[string]int, error) {
	if s == "{}" {
		return nil, nil
	}
	var areas map[string]int
	if err := json.Unmarshal([]byte(s), &areas); err != nil {
		return nil, fmt.Errorf("areas of a basket: %w", err)
	}
	return areas, nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
