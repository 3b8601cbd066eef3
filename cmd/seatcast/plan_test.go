package main

import (
	"bytes"
	"strings"
	"testing"
)

func planned(t *testing.T, args string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"plan"}, strings.Fields(args)...), &out, &out)
	return out.String(), err
}

func TestAPlanFollowsLittlesLaw(t *testing.T) {
	out, err := planned(t, "--codes 1500000 --show-up 0.4 --inside 20000 --session 5m")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	for n, want := range []string{"admit 4,000 a minute", "drains in 150 min (2h30m)"} {
		if !strings.HasPrefix(lines[n], want) {
			t.Errorf("line %d is %q", n+1, lines[n])
		}
	}
	for _, want := range []string{"10m", "2,000", "5h", "docs/benchmarks.md"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "wait in vain") {
		t.Error("seats that nobody named are sold out")
	}
}

func TestAPlanSaysWhenSeatsAreGoneAndWhoWaitsInVain(t *testing.T) {
	// 4,000 a minute, of whom half buy two: 4,000 tickets a minute, 52,000 in
	// 13 minutes, and the last ones stay their 5. 18 minutes let 72,000 in.
	out, err := planned(t, "--codes 1500000 --show-up 0.4 --inside 20000 --session 5m --seats 52000 --buyers 0.5 --tickets 2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sold out after 18 min (18m)", "528,000 wait in vain"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if out, err = planned(t, "--codes 100 --show-up 1 --inside 10 --session 5m --seats 52000"); err != nil || !strings.Contains(out, "never sold out") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAPlanRefusesWhatCannotBe(t *testing.T) {
	const good = "--codes 10 --show-up 0.4 --inside 2 --session 5m "
	for _, bad := range []string{
		"--codes 0 --show-up 0.4 --inside 2 --session 5m", "--codes 10 --show-up 1.1 --inside 2 --session 5m",
		"--codes 10 --show-up 0.4 --inside 0 --session 5m", "--codes 10 --show-up 0.4 --inside 2 --session 0s",
		"--codes 10 --show-up NaN --inside 2 --session 5m", "--codes 10 --show-up 0.4 --inside 2",
		good + "--buyers 0", good + "--tickets 0.5", good + "--frames 11", good + "--looks 0", good + "--cores 0", good + "--seats=-1",
	} {
		if out, err := planned(t, bad); err == nil || !strings.Contains(err.Error(), " must be ") {
			t.Errorf("%s: %v\n%s", bad, err, out)
		}
	}
}
