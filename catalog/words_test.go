package catalog

import (
	"strings"
	"testing"
	"time"
)

func TestSlugOfANameIsAnEventID(t *testing.T) {
	for name, want := range map[string]string{
		"Théâtre du Châtelet — L'Été!": "theatre-du-chatelet-lete",
		"  AC/DC  2027 ":               "ac-dc-2027",
		"東京ドーム":                        "event",
		strings.Repeat("long ", 40):    strings.Repeat("long-", 12) + "lon",
	} {
		if got := slug(name); got != want || !eventID.MatchString(got) {
			t.Errorf("slug(%q) = %q; want %q", name, got, want)
		}
	}
	if got := numbered(strings.Repeat("a", 63), 12); got != strings.Repeat("a", 60)+"-12" {
		t.Errorf("the twelfth of a long name is %q; want it to fit 63 bytes", got)
	}
}

func TestCurrenciesAreCodesPeoplePayIn(t *testing.T) {
	for code, want := range map[string]bool{"EUR": true, "AED": true, "ZWG": true, "JPY": true, "eur": false, "EU": false,
		"DEM": false, "XXX": false, "": false, "EUR ": false} {
		if knownCurrency(code) != want {
			t.Errorf("knownCurrency(%q) = %v", code, !want)
		}
	}
}

func TestPricesAreWholeMinorUnits(t *testing.T) {
	got, err := ParsePrices("Stalls A=8500, Stalls B = 6000,a=b=0")
	if err != nil || len(got) != 3 || got["Stalls A"] != 8500 || got["Stalls B"] != 6000 || got["a=b"] != 0 {
		t.Errorf("ParsePrices = %v, %v", got, err)
	}
}

func TestEveryPriceThatCannotBeReadIsNamed(t *testing.T) {
	_, err := ParsePrices("A=85.00,B,=5,C=-1,D=1,D=2,E=99999999999999")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"85.00" for "A"`, `"B" has no '='`, `"=5" names no category`, `"-1" for "C"`, `"D" is there twice`, `for "E"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not tell %s:\n%v", want, err)
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
