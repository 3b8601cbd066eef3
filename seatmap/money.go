package seatmap

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Money is an amount in minor units of a currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"` // ISO 4217
}

// String writes an amount with the decimals of its currency, such as
// "85.00 EUR", "8500 JPY" and "8.500 KWD".
func (m Money) String() string {
	decimals, known := Decimals(m.Currency)
	if !known {
		return fmt.Sprintf("%d minor units of %s", m.Amount, m.Currency)
	}
	digits, sign := strconv.FormatInt(m.Amount, 10), ""
	if m.Amount < 0 {
		digits, sign = digits[1:], "-"
	}
	if decimals == 0 {
		return sign + digits + " " + m.Currency
	}
	if short := decimals + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	at := len(digits) - decimals
	return sign + digits[:at] + "." + digits[at:] + " " + m.Currency
}

// currencies are the active codes of ISO 4217 by the decimals that it gives
// them, without funds, metals and testing codes: money a shopper can pay in.
var currencies = map[int]string{
	0: `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF`,
	2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN
	    BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB
	    EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR
	    JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT
	    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP
	    PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN
	    SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST
	    XCD XCG YER ZAR ZMW ZWG`,
	3: `BHD IQD JOD KWD LYD OMR TND`,
}

var decimalsOf = func() map[string]int {
	all := map[string]int{}
	for decimals, codes := range currencies {
		for code := range strings.FieldsSeq(codes) {
			all[code] = decimals
		}
	}
	return all
}()

// Decimals is how many digits of an amount in minor units of a currency stand
// after the point: 2 for EUR, 0 for JPY, 3 for KWD. It knows the active codes of
// ISO 4217.
func Decimals(currency string) (decimals int, known bool) {
	decimals, known = decimalsOf[currency]
	return decimals, known
}

// Allocate splits an amount of nought or more into parts in proportion to
// weights of nought or more, by the method of the largest remainder: each part
// is its exact share rounded down, and what is left goes, one unit each, to those
// that lost most by that: where they lost the same to the greater weight, and of
// equal weights to the earlier, so the order decides between equals only. The
// parts add up to the amount, none is below nought or further than one unit
// from its exact share, and equal weights differ by one unit at most. Weights
// that are all nought count as equal. Of no weights there are no parts. The
// weights must add up to less than 2⁶³.
func Allocate(amount int64, weights []int64) []int64 {
	if len(weights) == 0 {
		return nil
	}
	var whole uint64
	for _, w := range weights {
		whole += uint64(w)
	}
	if whole == 0 {
		return Allocate(amount, slices.Repeat([]int64{1}, len(weights)))
	}
	parts, lost, order := make([]int64, len(weights)), make([]uint64, len(weights)), make([]int, len(weights))
	left := amount
	for n, w := range weights {
		hi, lo := bits.Mul64(uint64(amount), uint64(w)) // 128 bits: the product of two prices may not fit 64
		quotient, remainder := bits.Div64(hi, lo, whole)
		parts[n], lost[n], order[n] = int64(quotient), remainder, n
		left -= parts[n]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(lost[b], lost[a]), cmp.Compare(weights[b], weights[a]))
	})
	for _, n := range order[:left] {
		parts[n]++
	}
	return parts
}

// Fee is what an event asks beside the prices of its seats and places.
type Fee struct {
	Name   string
	Per    FeePer
	Amount int64 // minor units; for PerCent basis points, of which 10,000 are the whole
}

// FeePer is what a fee is asked for.
type FeePer string

// What a fee can be asked for.
const (
	PerTicket FeePer = "ticket"  // so much for each seat and place
	PerCent   FeePer = "percent" // so much of the price of each, rounded there, halves up
	PerOrder  FeePer = "order"   // once, however many
)

// BasisPoints are the whole of a price.
const BasisPoints = 10_000

// of is the fee of one ticket at a price, and nought for what is asked once.
func (f Fee) of(price int64) int64 {
	switch f.Per {
	case PerTicket:
		return f.Amount
	case PerCent:
		return (price*f.Amount + BasisPoints/2) / BasisPoints
	}
	return 0
}

// AllIn is what one ticket at a price costs with every fee, bought alone.
func AllIn(price int64, fees []Fee) int64 {
	all := price
	for _, f := range fees {
		all += f.of(price)
		if f.Per == PerOrder {
			all += f.Amount
		}
	}
	return all
}
