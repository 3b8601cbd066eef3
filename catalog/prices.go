package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"seatcast/seatmap"
)

// maxAmount keeps the sum of any booking far from what 63 bits hold, and
// every price exact in JavaScript.
const maxAmount = 1_000_000_000_000

// ParsePrices reads prices in minor units of a currency by category, such as
// "Stalls A=8500,Stalls B=6000". It returns seatmap.Faults naming every part
// that cannot be read. The currency is for examples only; empty: it is not known.
func ParsePrices(text, currency string) (map[string]int64, error) {
	prices := map[string]int64{}
	var fs seatmap.Faults
	for part := range strings.SplitSeq(text, ",") {
		category, amount, err := parsePrice(part, currency)
		if err != nil {
			fs.Add("prices", "%v", err)
			continue
		}
		if _, ok := prices[category]; ok {
			fs.Add("prices", "category %q is there twice", category)
		}
		prices[category] = amount
	}
	if err := fs.Err(); err != nil {
		return nil, err
	}
	return prices, nil
}

func parsePrice(part, currency string) (category string, amount int64, err error) {
	at := strings.LastIndexByte(part, '=')
	if at < 0 {
		return "", 0, fmt.Errorf("%q has no '=': write category=amount, such as Stalls=8500", part)
	}
	category, number := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
	if category == "" {
		return "", 0, fmt.Errorf("%q names no category before the '='", part)
	}
	if amount, err = parseAmount(number, currency); err != nil {
		return "", 0, fmt.Errorf("%q for %q is no amount: %w", number, category, err)
	}
	return category, amount, nil
}

// parseAmount reads whole minor units. Its error says how they are written.
func parseAmount(number, currency string) (int64, error) {
	// ParseUint takes no sign and no point: 85.00 must not become 85.
	n, err := strconv.ParseUint(number, 10, 63)
	if err == nil && n <= maxAmount {
		return int64(n), nil
	}
	return 0, fmt.Errorf("write whole minor units up to %d, such as 8500 for %s", int64(maxAmount), example(currency))
}

// example is what 8500 minor units of a currency are.
func example(currency string) string {
	if _, known := seatmap.Decimals(currency); known {
		return seatmap.Money{Amount: 8500, Currency: currency}.String()
	}
	return "85.00 EUR, 8500 JPY or 8.500 KWD"
}
