package seatmap_test

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"seatcast/seatmap"
)

func TestMoneyIsWrittenWithTheDecimalsOfItsCurrency(t *testing.T) {
	for _, tt := range []struct {
		amount         int64
		currency, want string
	}{
		{8500, "EUR", "85.00 EUR"}, {5, "EUR", "0.05 EUR"}, {0, "EUR", "0.00 EUR"}, {-1205, "EUR", "-12.05 EUR"},
		{8500, "JPY", "8500 JPY"}, {0, "JPY", "0 JPY"}, {-1, "JPY", "-1 JPY"},
		{8500, "KWD", "8.500 KWD"}, {7, "KWD", "0.007 KWD"},
		{8500, "XXX", "8500 minor units of XXX"},
	} {
		if got := (seatmap.Money{Amount: tt.amount, Currency: tt.currency}).String(); got != tt.want {
			t.Errorf("%d of %s is %q, not %q", tt.amount, tt.currency, got, tt.want)
		}
	}
}

func TestCurrenciesHaveTheDecimalsOfISO4217(t *testing.T) {
	for code, want := range map[string]int{"EUR": 2, "USD": 2, "HUF": 2, "RSD": 2, "IDR": 2, "JPY": 0, "KRW": 0, "ISK": 0, "XAF": 0, "KWD": 3, "IQD": 3, "TND": 3} {
		if got, known := seatmap.Decimals(code); got != want || !known {
			t.Errorf("%s has %d decimals, %v", code, got, known)
		}
	}
	for _, code := range []string{"", "eur", "XXX", "XAU", "EU", "DEM", "HRK"} {
		if _, known := seatmap.Decimals(code); known {
			t.Errorf("%q passes for a currency", code)
		}
	}
}

// amounts are those a price, a fee or an order may have.
var amounts = rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1_000_000_000_000))

func TestPartsAddUpAndNoneIsAUnitFromItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := amounts.Draw(t, "amount")
		weights := rapid.SliceOfN(amounts, 1, 40).Draw(t, "weights")
		parts := seatmap.Allocate(amount, weights)
		if again := seatmap.Allocate(amount, weights); !slices.Equal(parts, again) {
			t.Fatalf("once %v and once %v", parts, again)
		}
		total, whole := int64(0), big.NewInt(0)
		for n := range weights {
			total += parts[n]
			whole.Add(whole, big.NewInt(weights[n]))
		}
		if total != amount {
			t.Fatalf("parts %v of %d are %d", parts, amount, total)
		}
		for n, part := range parts {
			w := big.NewInt(weights[n])
			if whole.Sign() == 0 {
				w.SetInt64(1)
			}
			of := whole
			if whole.Sign() == 0 {
				of = big.NewInt(int64(len(weights)))
			}
			exact := new(big.Rat).SetFrac(w.Mul(w, big.NewInt(amount)), of)
			off := exact.Sub(exact, new(big.Rat).SetInt64(part))
			if part < 0 || off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("part %d of %v is %d, %v from its share", n, weights, part, off)
			}
		}
	})
}

func TestOfPartsThatLostTheSameTheGreaterGetsTheUnit(t *testing.T) {
	for _, weights := range [][]int64{{1, 1, 7}, {1, 7, 1}, {7, 1, 1}} {
		got := paired(weights, seatmap.Allocate(15, weights))
		if want := [][2]int64{{1, 1}, {1, 2}, {7, 12}}; !slices.Equal(got, want) {
			t.Errorf("15 by %v: %v", weights, got)
		}
	}
}

func TestPartsDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := amounts.Draw(t, "amount")
		weights := rapid.SliceOfN(amounts, 1, 40).Draw(t, "weights")
		shuffled := rapid.Permutation(weights).Draw(t, "shuffled")
		if a, b := paired(weights, seatmap.Allocate(amount, weights)), paired(shuffled, seatmap.Allocate(amount, shuffled)); !slices.Equal(a, b) {
			t.Fatalf("%v in one order, %v in another", a, b)
		}
	})
}

// paired are weights with their parts, sorted.
func paired(weights, parts []int64) (pairs [][2]int64) {
	for n := range weights {
		pairs = append(pairs, [2]int64{weights[n], parts[n]})
	}
	slices.SortFunc(pairs, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}

// anyFee is one an event may have.
var anyFee = rapid.Custom(func(t *rapid.T) seatmap.Fee {
	f := seatmap.Fee{Name: "Fee", Per: rapid.SampledFrom([]seatmap.FeePer{seatmap.PerTicket, seatmap.PerCent, seatmap.PerOrder}).Draw(t, "per")}
	f.Amount = amounts.Draw(t, "amount")
	if f.Per == seatmap.PerCent {
		f.Amount = rapid.Int64Range(0, seatmap.BasisPoints).Draw(t, "basis points")
	}
	return f
})

func TestAQuoteAddsUpWhateverItsFees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sale()
		s.Prices = map[string]int64{"gold": amounts.Draw(t, "gold"), "tin": amounts.Draw(t, "tin")}
		s.Fees = rapid.SliceOfN(anyFee, 0, 5).Draw(t, "fees")
		seats := rapid.SampledFrom([][]int{nil, {0}, {1}, {0, 1}}).Draw(t, "seats")
		areas := map[string]int{}
		if n := rapid.IntRange(0, 7).Draw(t, "places"); n > 0 {
			areas["pit"] = n
		}
		q, err := s.Quote(seats, areas)
		if err != nil {
			t.Fatal(err)
		}
		if len(seats) == 0 && len(areas) == 0 {
			return // nothing to charge, and nobody asks for it
		}
		if !q.AddsUp() {
			t.Fatalf("it does not add up: %+v", q)
		}
		tickets := int64(0)
		for _, seat := range q.Seats {
			if seat.AllIn < seat.Price {
				t.Fatalf("a seat for %d costs %d", seat.Price, seat.AllIn)
			}
			tickets += seat.AllIn
		}
		for _, a := range q.Areas {
			for _, place := range a.Places() {
				if place < a.Price || place > seatmap.AllIn(a.Price, s.Fees) {
					t.Fatalf("a place for %d costs %d, and at most %d was said", a.Price, place, seatmap.AllIn(a.Price, s.Fees))
				}
				tickets += place
			}
		}
		if tickets != q.Total.Amount {
			t.Fatalf("the tickets cost %d and the order %d", tickets, q.Total.Amount)
		}
	})
}

func TestFeesAreItemisedAndSharedByTheTickets(t *testing.T) {
	s := sale()
	s.Fees = []seatmap.Fee{{Name: "Service", Per: seatmap.PerCent, Amount: 525}, {Name: "Facility", Per: seatmap.PerTicket, Amount: 250}, {Name: "Order", Per: seatmap.PerOrder, Amount: 100}}
	q, err := s.Quote([]int{0, 1}, map[string]int{"pit": 2})
	if err != nil {
		t.Fatal(err)
	}
	// 5.25 % of 9000 is 472.5 and of 2500 131.25; of 100 the shares are 54.5 and 15.15 thrice.
	want := []seatmap.QuotedFee{{Name: "Service", Amount: 473 + 3*131}, {Name: "Facility", Amount: 4 * 250}, {Name: "Order", Amount: 100}}
	if !slices.Equal(q.Fees, want) {
		t.Errorf("fees %v, want %v", q.Fees, want)
	}
	if gold, tin, pit := q.Seats[0].AllIn, q.Seats[1].AllIn, q.Areas[0].AllIn; gold != 9000+473+250+55 || tin != 2500+131+250+15 || pit != 2*(2500+131+250+15) {
		t.Errorf("%d, %d and %d, all in", gold, tin, pit)
	}
	if q.Seats[0].Price != 9000 || q.Areas[0].Price != 2500 {
		t.Errorf("the prices without fees are %d and %d", q.Seats[0].Price, q.Areas[0].Price)
	}
	if alone := seatmap.AllIn(9000, s.Fees); alone != 9000+473+250+100 {
		t.Errorf("bought alone it costs %d", alone)
	}
}

func TestAnOrderFeeOfFreeTicketsIsSharedEqually(t *testing.T) {
	s := sale()
	s.Prices = map[string]int64{"gold": 0, "tin": 0}
	s.Fees = []seatmap.Fee{{Name: "Order", Per: seatmap.PerOrder, Amount: 100}}
	q, err := s.Quote([]int{0}, map[string]int{"pit": 2})
	if err != nil {
		t.Fatal(err)
	}
	if seat, places := q.Seats[0].AllIn, q.Areas[0].Places(); seat != 34 || !slices.Equal(places, []int64{33, 33}) {
		t.Errorf("a seat %d and places %v", seat, places)
	}
}

func TestAQuoteFromBeforeThereWereFeesIsReadAsOneWithout(t *testing.T) {
	q, err := seatmap.ParseQuote([]byte(`{"seats":[{"i":0,"price":9000}],"areas":[{"area":"pit","quantity":3,"price":2500}],"total":{"amount":16500,"currency":"EUR"}}`))
	if err != nil || !q.AddsUp() || q.Seats[0].AllIn != 9000 || q.Areas[0].AllIn != 7500 || q.Fees == nil {
		t.Errorf("%+v, %v", q, err)
	}
	doctored, err := seatmap.ParseQuote([]byte(`{"seats":[{"i":0,"price":9000}],"areas":[],"total":{"amount":90,"currency":"EUR"}}`))
	if err != nil || doctored.AddsUp() {
		t.Errorf("%+v adds up, %v", doctored, err)
	}
	s := sale()
	s.Fees = []seatmap.Fee{{Name: "Order", Per: seatmap.PerOrder, Amount: 100}}
	made, err := s.Quote([]int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := seatmap.ParseQuote(text); err != nil || read.Total != made.Total || read.Seats[0] != made.Seats[0] {
		t.Errorf("%+v, %v", read, err)
	}
}
