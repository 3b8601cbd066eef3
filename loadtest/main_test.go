package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes this binary the program when it is called as one of the
// processes a measurement starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "reader" || os.Args[1] == "raw" || os.Args[1] == "nethttp") {
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// A process built with -race sleeps a second before it ends, unless told otherwise.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--rate 0":              "more than 0",
		"--rate=-1":             "more than 0",
		"--rate NaN":            "more than 0",
		"--rate 50":             "at most 8",
		"--conns 0":             "at least one session",
		"--conns 10000000":      "ulimit -n",
		"--frames 0":            "at least one",
		"--pairs 0":             "at least one",
		"--changes 5000":        "1 to 1000",
		"--transport quic":      "sse",
		"--against mercure":     "there is no server \"mercure\"",
		"--against seatcast":    "always measured",
		"--herd --drain":        "one of them at a time",
		"--dead 1% --churn":     "one of them at a time",
		"--dead 0":              "a share",
		"--dead 90%":            "a share",
		"--dead x":              "a share",
		"--burst --changes 3":   "leave --changes out",
		"--drain --against raw": "leave --against out",
		"--drain --json x.json": "leave it out",
		"--churn-rate 5":        "--churn",
		"--seatcast /no/such":   "no such file",
		"--for=-3s":             "a time is needed",
		"--nonsense":            "unknown flag",
	} {
		err := run(context.Background(), append([]string{"fanout"}, strings.Fields(args)...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", args, err, want)
		}
	}
}

func TestHelpHidesWhatOnlyMeasurementsCall(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "fanout") || strings.Contains(text, "nethttp") {
		t.Errorf("%s", text)
	}
}

func TestTheRealProgramIsMeasuredAndVerified(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	file := filepath.Join(t.TempDir(), "rows.json")
	var out strings.Builder
	err := run(context.Background(), strings.Fields("fanout --conns 50 --rate 8 --frames 6 --pairs 1 --against raw --json "+file), &out, io.Discard)
	if err != nil && strings.Contains(err.Error(), "not installed") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	var rows []struct {
		Server               string
		Deliveries, Expected int
		Missing              bool
	}
	if err = errors.Join(err, json.Unmarshal(text, &rows)); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Server != "seatcast" || rows[0].Deliveries != 300 || rows[0].Expected != 300 || rows[1].Server != "raw" {
		t.Errorf("%s", text)
	}
}
