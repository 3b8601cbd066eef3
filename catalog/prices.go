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

// ParsePrices reads prices in minor units by category, such as
// "Stalls A=8500,Stalls B=6000". It returns seatmap.Faults naming every part
// that cannot be read.
func ParsePrices(text string) (map[string]int64, error) {
	prices := map[string]int64{}
	var fs seatmap.Faults
	for part := range strings.SplitSeq(text, ",") {
		category, amount, err := parsePrice(part)
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

func parsePrice(part string) (category string, amount int64, err error) {
	at := strings.LastIndexByte(part, '=')
	if at < 0 {
		return "", 0, fmt.Errorf("%q has no '=': write category=amount, such as Stalls=8500", part)
	}
	category, number := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
	if category == "" {
		return "", 0, fmt.Errorf("%q names no category before the '='", part)
	}
	// ParseUint takes no sign and no point: 85.00 must not become 85.
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > maxAmount {
		return "", 0, fmt.Errorf("%q for %q is no amount: write whole minor units up to %d, such as 8500 for 85.00",
			number, category, int64(maxAmount))
	}
	return category, int64(n), nil
}
