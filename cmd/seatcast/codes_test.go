package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"seatcast/waitingroom"
)

func TestCodesAreMintedAgainAndKnownToTheServers(t *testing.T) {
	t.Setenv("SEATCAST_SERVER_KEY", testServerKey)
	mint := func(args ...string) (lines []string) {
		t.Helper()
		var out, errs strings.Builder
		if err := run(t.Context(), append([]string{"codes"}, args...), &out, &errs); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	all := mint("--event", "theatre", "--count", "1000")
	if len(all) != 1000 || !slices.Equal(mint("--event", "theatre", "--count", "100", "--from", "901"), all[900:]) {
		t.Fatalf("%d codes, or others the second time", len(all))
	}
	keys, err := waitingroom.ParseKeys("", testServerKey)
	if err != nil {
		t.Fatal(err)
	}
	for n, code := range all {
		if serial, err := keys.OpenCode("theatre", code); err != nil || serial != n+1 {
			t.Fatalf("line %d, %q, is code %d, %v", n+1, code, serial, err)
		}
	}
	for _, wrong := range [][]string{
		{"--event", "theatre", "--count", "0"}, {"--event", "theatre", "--count", "10", "--from", "0"}, {"--event", "", "--count", "10"},
		{"--event", "theatre", "--count", fmt.Sprint(waitingroom.LastCode), "--from", "2"},
		{"--event", "theatre", "--count", "2", "--from", fmt.Sprint(math.MaxInt)}, // the last of them is a negative one
	} {
		if err := run(t.Context(), append([]string{"codes"}, wrong...), &strings.Builder{}, &strings.Builder{}); err == nil {
			t.Errorf("codes %v were minted", wrong)
		}
	}
}
