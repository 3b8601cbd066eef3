package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestSlugOfANameIsAnEventID(t *testing.T) {
	for name, want := range map[string]string{
		"Théâtre du Châtelet — L'Été!": "theatre-du-chatelet-lete",
		"  AC/DC  2027 ":               "ac-dc-2027",
		"東京ドーム":                        "event",
		strings.Repeat("long ", 40):    strings.Repeat("long-", 12) + "lon",
	} {
		if got := slug(name); got != want || !validID(got) {
			t.Errorf("slug(%q) = %q; want %q", name, got, want)
		}
	}
	if got := numbered(strings.Repeat("a", 63), 12); got != strings.Repeat("a", 60)+"-12" {
		t.Errorf("the twelfth of a long name is %q; want it to fit 63 bytes", got)
	}
}

func TestAnEventIDIsOfSmallLettersDigitsAndHyphens(t *testing.T) {
	for id, want := range map[string]bool{
		"derby": true, "7": true, "a-": true, "2027-06-01": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "Derby": false, "a_b": false, "a.b": false, "é": false, "a/b": false, "a\x00": false, "a b": false,
		"search": false, "search2": true, strings.Repeat("a", 64): false,
	} {
		if got := validID(id); got != want {
			t.Errorf("%q may be one: %v", id, got)
		}
	}
}

func TestPricesAreWholeMinorUnits(t *testing.T) {
	got, err := ParsePrices("Stalls A=8500, Stalls B = 6000,a=b=0", "EUR")
	if err != nil || len(got) != 3 || got["Stalls A"] != 8500 || got["Stalls B"] != 6000 || got["a=b"] != 0 {
		t.Errorf("ParsePrices = %v, %v", got, err)
	}
}

func TestEveryPriceThatCannotBeReadIsNamed(t *testing.T) {
	_, err := ParsePrices("A=85.00,B,=5,C=-1,D=1,D=2,E=99999999999999", "EUR")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"85.00" for "A"`, `"B" has no '='`, `"=5" names no category`, `"-1" for "C"`, `"D" is there twice`, `for "E"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell %s:\n%v", want, err)
		}
	}
}

func TestAnAmountThatCannotBeReadIsExplainedInItsOwnCurrency(t *testing.T) {
	for currency, want := range map[string]string{"EUR": "8500 for 85.00 EUR", "JPY": "8500 for 8500 JPY", "KWD": "8500 for 8.500 KWD", "": "8500 for 85.00 EUR, 8500 JPY or 8.500 KWD"} {
		if _, err := ParsePrices("A=85.00", currency); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("a price in %q: %v; want it to end with %q", currency, err, want)
		}
		if _, err := ParseFees("A=0.5", currency); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("a fee in %q: %v; want it to end with %q", currency, err, want)
		}
	}
}

func TestFeesAreOfAPriceOfATicketOrOfAnOrder(t *testing.T) {
	got, err := ParseFees("Service=5%, Facility=250, Print at home = 100 / ticket,Order=150/order,a=b=12.75%,half=.5%", "EUR")
	if err == nil {
		t.Errorf("a percentage that begins with a point is read as %v", got)
	}
	got, err = ParseFees("Service=5%, Facility=250, Print at home = 100 / ticket,Order=150/order,a=b=12.75%,all=100%,tenth=0.1%", "EUR")
	want := []seatmap.Fee{{Name: "Service", Per: seatmap.PerCent, Amount: 500}, {Name: "Facility", Per: seatmap.PerTicket, Amount: 250},
		{Name: "Print at home", Per: seatmap.PerTicket, Amount: 100}, {Name: "Order", Per: seatmap.PerOrder, Amount: 150},
		{Name: "a=b", Per: seatmap.PerCent, Amount: 1275}, {Name: "all", Per: seatmap.PerCent, Amount: 10000}, {Name: "tenth", Per: seatmap.PerCent, Amount: 10}}
	if err != nil || !slices.Equal(got, want) || faultsOfFees(got).Err() != nil {
		t.Errorf("ParseFees = %v, %v, %v", got, err, faultsOfFees(got))
	}
	if none, err := ParseFees(" ", "EUR"); err != nil || none != nil {
		t.Errorf("of no text %v, %v", none, err)
	}
}

func TestEveryFeeThatCannotBeIsNamed(t *testing.T) {
	_, err := ParseFees("A=2.5,B,C=-1,D=100.01%,E=1.234%,F=%,G=5/seat,H=99999999999999,I=5.%,J=-1%,K=1e2%", "EUR")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"2.5" for "A"`, `"B" has no '='`, `"-1" for "C"`, `"100.01%" for "D"`, `"1.234%" for "E"`, `"%" for "F"`, `"5/seat" for "G"`,
		`for "H"`, `"5.%" for "I"`, `"-1%" for "J"`, `"1e2%" for "K"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell %s:\n%v", want, err)
		}
	}
	long := strings.Repeat("é", maxFeeName+1)
	all := []seatmap.Fee{{Name: "", Per: seatmap.PerTicket}, {Name: long, Per: seatmap.PerTicket}, {Name: "twice", Per: seatmap.PerOrder}, {Name: "twice", Per: seatmap.PerOrder},
		{Name: "odd", Per: "seat"}, {Name: "less", Per: seatmap.PerTicket, Amount: -1}, {Name: "more", Per: seatmap.PerCent, Amount: 10001}, {Name: "a\x00b", Per: seatmap.PerTicket}}
	told := faultsOfFees(append(all, make([]seatmap.Fee, maxFees)...)).Error()
	for _, want := range []string{`the name ""`, long, `"twice" is there twice`, `"odd" is asked per "seat"`, `-1 for "less"`, `10001 for "more"`, `"a\x00b"`, "18 are more than 10"} {
		if !strings.Contains(told, want) {
			t.Errorf("the faults do not tell %s:\n%s", want, told)
		}
	}
}

func TestWallClocksAreOfTheVenue(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2027-06-01T20:00", "Europe/Paris", "2027-06-01T18:00:00Z"},
		{"2027-01-01T20:00:30", "Europe/Paris", "2027-01-01T19:00:30Z"},
		{"2027-06-01T20:00:00+09:00", "Europe/Paris", "2027-06-01T11:00:00Z"},
		{"2027-03-28T01:59", "Europe/Paris", "2027-03-28T00:59:00Z"},
		{"2027-03-28T03:00", "Europe/Paris", "2027-03-28T01:00:00Z"},
		{"2027-10-31T03:00", "Europe/Paris", "2027-10-31T02:00:00Z"},
		{"2027-10-31T02:30:00+01:00", "Europe/Paris", "2027-10-31T01:30:00Z"},
		{"2027-06-01T20:00", "Asia/Kathmandu", "2027-06-01T14:15:00Z"},
		{"2027-06-01T20:00", "UTC", "2027-06-01T20:00:00Z"},
	} {
		got, err := ParseWhen(c.text, c.zone)
		if err != nil || got.UTC().Format(time.RFC3339) != c.want || got.Location().String() != c.zone {
			t.Errorf("ParseWhen(%q, %q) = %v, %v; want %s", c.text, c.zone, got, err, c.want)
		}
	}
}

func TestWallClocksThatMeanNoOneMomentAreRefused(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2027-03-28T02:30", "Europe/Paris", "does not exist in Europe/Paris"},
		{"2027-10-31T02:30", "Europe/Paris", "write 2027-10-31T02:30:00+02:00 or 2027-10-31T02:30:00+01:00"},
		{"2027-04-04T01:45", "Australia/Lord_Howe", "comes twice"}, // a change of half an hour
		{"2027-03-14T02:00", "America/New_York", "does not exist"},
		{"tomorrow", "Europe/Paris", "is no time"},
		{"2027-06-01", "Europe/Paris", "is no time"},
		{"2027-06-01T20:00", "Mars/Olympus", "no IANA time zone"},
		{"2027-06-01T20:00", "Local", "no IANA time zone"},
		{"2027-06-01T20:00", "", "no IANA time zone"},
	} {
		if got, err := ParseWhen(c.text, c.zone); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseWhen(%q, %q) = %v, %v; want an error that tells %q", c.text, c.zone, got, err, c.want)
		}
	}
}
