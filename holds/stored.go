package holds

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"seatcast/seatmap"
)

//go:embed stored.lua
var storedLua string

//go:embed account.lua
var accountLua string

//go:embed index.lua
var indexLua string

// A basket is one string in Redis: "<state> <first> <until> <cap> <body>". The
// scripts read and write the head, in which times are milliseconds. Only what is
// here reads the body; a script tells whether it is the one its caller has read,
// and puts another in its place for swap and seal.

// body is what a basket says of itself.
type body struct {
	User   string          `json:"user"`
	Seats  []int           `json:"seats,omitempty"`
	Areas  map[string]int  `json:"areas,omitempty"`
	Hash   string          `json:"hash"`
	Quote  json.RawMessage `json:"quote,omitempty"`
	Sealed bool            `json:"sealed,omitempty"`

	Operator string `json:"operator,omitempty"`
	Note     string `json:"note,omitempty"`
}

func writeBody(b seatmap.Basket) (string, error) {
	text, err := json.Marshal(body{b.User, b.Seats, b.Areas, b.Hash, b.Quote, b.Sealed, b.Operator, b.Note})
	if err != nil {
		return "", fmt.Errorf("body of a basket: %w", err)
	}
	return string(text), nil
}

// parseBasket reads a basket as it is stored, and its body as it is written.
func parseBasket(event, token, stored string) (b seatmap.Basket, text string, err error) {
	part := strings.SplitN(stored, " ", 5)
	if len(part) < 5 {
		return b, "", fmt.Errorf("basket %s of %s cannot be read: it has no head", token, event)
	}
	b = seatmap.Basket{Event: event, Token: token, State: seatmap.BasketState(part[0])}
	switch b.State {
	case seatmap.BasketHeld, seatmap.BasketReleased, seatmap.BasketSold:
	default:
		return b, "", fmt.Errorf("basket %s of %s cannot be read: its state is %q", token, event, part[0])
	}
	for k, to := range []*time.Time{&b.First, &b.Until, &b.Cap} {
		if *to, err = millis(part[k+1]); err != nil {
			return b, "", fmt.Errorf("basket %s of %s cannot be read: %w", token, event, err)
		}
	}
	var said body
	if err := json.Unmarshal([]byte(part[4]), &said); err != nil {
		return b, "", fmt.Errorf("basket %s of %s cannot be read: %w", token, event, err)
	}
	b.User, b.Seats, b.Areas, b.Hash, b.Quote, b.Sealed = said.User, said.Seats, said.Areas, said.Hash, said.Quote, said.Sealed
	b.Operator, b.Note = said.Operator, said.Note
	return b, part[4], nil
}
