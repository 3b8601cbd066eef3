package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain makes this binary the program when it is called as one of the
// processes a measurement starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"reader", "raw", "nethttp", "front", "nats"}, os.Args[1]) {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
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

func TestFlagsOfAnOnsaleThatMakeNoSenseAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--users 0":      "use 1 to",
		"--fail 80%":     "a share",
		"--seats 100000": "use 1 to",
		"--at-once 0":    "use 1 to",
		"--for=-3s":      "a time is needed",
		"--kill 1ms":     "a second at least",
		"--nonsense":     "see loadtest onsale --help",
	} {
		err := run(context.Background(), append([]string{"onsale"}, strings.Fields(args)...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", args, err, want)
		}
	}
}

func TestFlagsOfARoomThatMakeNoSenseAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--fans 1":            "use 10 to",
		"--conns 0":           "use 1 to",
		"--pairs=-1":          "at least one",
		"--pairs 0 --no-draw": "at least one",
		"--idle 1ms":          "a second at least",
		"--nonsense":          "see loadtest room --help",
	} {
		err := run(context.Background(), append([]string{"room"}, strings.Fields(args)...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", args, err, want)
		}
	}
}

// installed skips the test at a desk without the servers.
func installed(t *testing.T, err error) {
	t.Helper()
	if err != nil && os.Getenv("CI") == "" && (strings.Contains(err.Error(), "not installed") || strings.Contains(err.Error(), "redis-tools")) {
		t.Skip(err)
	}
}

func TestARoomIsMeasuredAndNoPlaceIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	file := filepath.Join(t.TempDir(), "room.json")
	var out strings.Builder
	err := run(context.Background(), strings.Fields("room --fans 2000 --conns 50 --pairs 1 --idle 1s --json "+file), &out, io.Discard)
	installed(t, err)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	var r struct {
		Join struct {
			Server float64 `json:"server_us"`
			Redis  float64 `json:"redis_us"`
			Bytes  float64 `json:"redis_bytes_a_fan"`
		}
		Ticks []struct{ Waiting int }
		Draw  struct {
			DrawnMs float64 `json:"drawn_ms"`
			ByJoin  struct {
				Calls map[string]int64 `json:"redis_calls"`
			} `json:"by_join"`
		}
	}
	if err = errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		t.Fatal(err)
	}
	if r.Join.Server <= 0 || r.Join.Redis <= 0 || r.Join.Bytes <= 0 || len(r.Ticks) != 4 || r.Draw.DrawnMs <= 0 || r.Draw.ByJoin.Calls["evalsha"] < 2000 {
		t.Errorf("figures that cannot be: %s", text)
	}
	if !strings.Contains(out.String(), "ten o'clock") {
		t.Errorf("%s", &out)
	}
}

func TestASaleWithFailingPaymentsAndAKilledNodeAddsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	file := filepath.Join(t.TempDir(), "sale.json")
	var out strings.Builder
	err := run(context.Background(), strings.Fields("onsale --users 300 --fail 30% --at-once 100 --kill 5s --json "+file), &out, io.Discard)
	installed(t, err)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	var r struct {
		Verdict        string
		Contradictions []string
		Sold, Kills    int
		Cards          map[string]int
	}
	if err = errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		t.Fatal(err)
	}
	if r.Verdict != "green" || len(r.Contradictions) > 0 || r.Sold < 100 || r.Kills == 0 || len(r.Cards) < 10 {
		t.Errorf("%s", text)
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
	installed(t, err)
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

func TestFlagsOfContentionThatMakeNoSenseAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--strategy mysql":                      "there is no \"mysql\"",
		"--strategy redis,redis":                "named twice",
		"--strategy=":                           "name some of",
		"--buyers 0":                            "use 1 to",
		"--buyers 100000":                       "use 1 to",
		"--seats 1":                             "use 2 to",
		"--hot 20000":                           "quiet seats",
		"--hot 0":                               "use 1 to",
		"--seconds 0":                           "more than 0",
		"--seconds NaN":                         "more than 0",
		"--pairs 0":                             "at least one",
		"--hold 1ms":                            "use 100ms",
		"--bystander 0":                         "more than 0",
		"--bystander 1000 --seats 1000":         "free again",
		"--rate=-1":                             "at least 0",
		"--pool 1000":                           "use 1 to 150",
		"--transaction clever":                  "simple, realistic or locked",
		"--round-trips 3":                       "realistic or locked",
		"--round-trips=-1 --transaction=locked": "use 0 to",
		"--seatcast /no/such":                   "no such file",
		"--nonsense":                            "see loadtest contention --help",
	} {
		err := run(context.Background(), append([]string{"contention"}, strings.Fields(args)...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", args, err, want)
		}
	}
}

// smallContention is every strategy on little time.
const smallContention = "contention --buyers 20 --hot 5 --seats 200 --seconds 0.5 --hold 200ms --bystander 20 --pairs 1 --no-fsync "

func TestEveryAttemptIsMeasuredBesideSeatcast(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "rows.json"), filepath.Join(dir, "plot.svg")
	var out strings.Builder
	args := smallContention + "--strategy naive,postgres,redis,seatcast --json " + file + " --plot " + picture
	err := run(context.Background(), strings.Fields(args), &out, io.Discard)
	installed(t, err)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(file)
	var rows []map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &rows)); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 {
		t.Fatalf("%s", text)
	}
	for i, strategy := range []string{"naive", "postgres", "redis", "seatcast"} {
		r := rows[i]
		number := func(name string) float64 { n, _ := r[name].(float64); return n }
		if r["strategy"] != strategy || number("requests") != number("held")+number("refused") || number("held") < 5 || number("refused") < 20 ||
			number("cpu_us_per_refusal") <= 0 || number("p50_ms") <= 0 || number("p50_ms") > number("p99_ms") ||
			number("bystander_p99_ms") <= 0 || number("bystander_idle_p99_ms") <= 0 {
			t.Errorf("figures that cannot be: %v", r)
		}
		if busy := number("fixed_rate_busy"); strategy == "seatcast" != (number("bystander_fixed_rate_p99_ms") > 0) || strategy == "seatcast" != (busy > 0) || busy > 1.1 {
			t.Errorf("the storm at a fixed rate: %v", r)
		}
		if strategy != "naive" && number("sold_twice") != 0 {
			t.Errorf("%s sold %v seats twice", strategy, r["sold_twice"])
		}
		if calls := number("redis_calls_per_refusal"); (strategy == "redis") != (calls > 0.9) {
			t.Errorf("%s: %v calls of Redis a refusal", strategy, calls)
		}
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(svg), "<svg") || !strings.Contains(string(svg), "seatcast") {
		t.Errorf("the picture: %v\n%.300s", err, svg)
	}
	for _, want := range []string{"bare", "sold twice", "refusals that reach Redis", "latency"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &out)
		}
	}
}

// descendants are the command lines of the processes this one has started.
func descendants(t *testing.T) (all []string) {
	t.Helper()
	pids := []string{strconv.Itoa(os.Getpid())}
	for i := 0; i < len(pids); i++ {
		files, _ := filepath.Glob("/proc/" + pids[i] + "/task/*/children")
		for _, f := range files {
			text, _ := os.ReadFile(f) // gone meanwhile
			for _, pid := range strings.Fields(string(text)) {
				pids = append(pids, pid)
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
	}
	return all
}

func TestInterruptingContentionLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one error
	go func() { ended <- run(ctx, strings.Fields(smallContention+"--strategy naive"), io.Discard, io.Discard) }()
	isFront := func(line string) bool { return strings.Contains(line, " front {") }
	for end := time.Now().Add(3 * time.Minute); !slices.ContainsFunc(descendants(t), isFront); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			installed(t, err)
			t.Fatalf("it ended: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("no front was started")
		}
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("it ended with %v", err)
	}
	if left := descendants(t); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}
