package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"seatcast/seatmap"
)

// Bounds of what an event asks beside its prices.
const (
	maxFees    = 10
	maxFeeName = 60 // letters
)

// ParseFees reads the fees of an event in minor units of a currency, such as
// "Service=5%,Facility=250,Order=150/order": a part of the price of each ticket,
// so much for each ticket, so much for the order. Empty: none. It returns
// seatmap.Faults naming every part that cannot be read.
func ParseFees(text, currency string) (fees []seatmap.Fee, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var fs seatmap.Faults
	for part := range strings.SplitSeq(text, ",") {
		f, err := parseFee(part, currency)
		if err != nil {
			fs.Add("fees", "%v", err)
			continue
		}
		fees = append(fees, f)
	}
	if err := fs.Err(); err != nil {
		return nil, err
	}
	return fees, nil
}

func parseFee(part, currency string) (f seatmap.Fee, err error) {
	at := strings.LastIndexByte(part, '=')
	if at < 0 {
		return f, fmt.Errorf("%q has no '=': write name=amount for each ticket, name=5%% of its price, or name=amount/order", part)
	}
	value := strings.TrimSpace(part[at+1:])
	f = seatmap.Fee{Name: strings.TrimSpace(part[:at]), Per: seatmap.PerTicket}
	if percent, ok := strings.CutSuffix(value, "%"); ok {
		f.Per = seatmap.PerCent
		if f.Amount, err = parsePercent(strings.TrimSpace(percent)); err != nil {
			return f, fmt.Errorf("%q for %q is no percentage: %w", value, f.Name, err)
		}
		return f, nil
	}
	number, per, ok := strings.Cut(value, "/")
	switch {
	case ok && strings.TrimSpace(per) == "order":
		f.Per = seatmap.PerOrder
	case ok && strings.TrimSpace(per) != "ticket":
		return f, fmt.Errorf("%q for %q is asked for neither each ticket nor each order: write %s or %s/order", value, f.Name, number, number)
	}
	if f.Amount, err = parseAmount(strings.TrimSpace(number), currency); err != nil {
		return f, fmt.Errorf("%q for %q is no amount: %w", value, f.Name, err)
	}
	return f, nil
}

// parsePercent reads basis points: hundredths of a percent.
func parsePercent(text string) (int64, error) {
	whole, part, _ := strings.Cut(text, ".")
	digits := whole + part + strings.Repeat("0", max(0, 2-len(part)))
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || whole == "" || len(part) > 2 || strings.HasSuffix(text, ".") || n > seatmap.BasisPoints {
		return 0, errors.New("write 0 to 100 with up to two decimals, such as 12.75%")
	}
	return int64(n), nil
}

func faultsOfFees(fees []seatmap.Fee) (fs seatmap.Faults) {
	if len(fees) > maxFees {
		fs.Add("fees", "%d are more than %d", len(fees), maxFees)
	}
	seen := map[string]bool{}
	for _, f := range fees {
		if f.Name == "" || utf8.RuneCountInString(f.Name) > maxFeeName || !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, unicode.IsControl) {
			fs.Add("fees", "the name %q is empty, longer than %d letters or no text", f.Name, maxFeeName)
		}
		if seen[f.Name] {
			fs.Add("fees", "%q is there twice", f.Name)
		}
		seen[f.Name] = true
		most := int64(maxAmount)
		switch f.Per {
		case seatmap.PerTicket, seatmap.PerOrder:
		case seatmap.PerCent:
			most = seatmap.BasisPoints
		default:
			fs.Add("fees", "%q is asked per %q, which is none of %s, %s and %s", f.Name, f.Per, seatmap.PerTicket, seatmap.PerCent, seatmap.PerOrder)
		}
		if f.Amount < 0 || f.Amount > most {
			fs.Add("fees", "%d for %q is not between 0 and %d", f.Amount, f.Name, most)
		}
	}
	return fs
}
