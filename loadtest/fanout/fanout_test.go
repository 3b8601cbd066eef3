package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/reader"
	"seatcast/seatmap"
)

// TestMain makes this binary a reader or a peer when it is called as one.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "reader":
		err = reader.Run(os.Stdin, os.Stdout)
	case len(os.Args) == 3 && os.Args[1] == "raw":
		err = peers.Raw(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "nethttp":
		err = peers.NetHTTP(context.Background(), os.Stdout)
	default:
		// A process built with -race sleeps a second before it ends, unless told otherwise.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// small is a bench without a house, for servers that need none.
func small(t *testing.T, ws bool) *bench {
	t.Helper()
	b := &bench{o: &Options{Conns: 50, Rate: 8, Frames: 5, Pairs: 1, WS: ws, Self: os.Args[0], Out: io.Discard, Err: io.Discard},
		dir: t.TempDir(), look: 20 * time.Millisecond, missing: make(map[string]string)}
	if err := b.cores(); err != nil {
		t.Skip(err)
	}
	var err error
	if b.changes, err = peers.NewChanges(seatmap.Theatre(), 2); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFiftySessionsAreGivenEveryChange(t *testing.T) {
	for _, c := range []struct {
		name   string
		ws     bool
		noPath bool // no compiler is found: raw is the loop in Go
	}{{name: "raw"}, {name: "raw", ws: true}, {name: "raw", noPath: true}, {name: "nethttp"}, {name: "nethttp", ws: true}} {
		t.Run(fmt.Sprintf("%s ws=%v cc=%v", c.name, c.ws, !c.noPath), func(t *testing.T) {
			b := small(t, c.ws)
			if c.noPath {
				t.Setenv("PATH", t.TempDir())
			}
			f, err := b.round(context.Background(), c.name, b.o.Rate, 0)
			if err != nil {
				t.Fatal(err)
			}
			if f.Expected != 250 || f.Deliveries != f.Expected || f.wrong != nil {
				t.Errorf("%d of %d deliveries: %v", f.Deliveries, f.Expected, f.wrong)
			}
			if f.cpu <= 0 || f.P50 <= 0 || f.P50 > f.P99 || f.P99 > f.Max*1.01 || f.bytes < 100 {
				t.Errorf("figures that cannot be: %+v", f)
			}
			if said := slices.ContainsFunc(b.notes, func(n string) bool { return strings.Contains(n, "no cc") }); said != c.noPath {
				t.Errorf("that there is no compiler is said: %v", b.notes)
			}
		})
	}
}

func TestAMissingServerHasARowThatSaysSo(t *testing.T) {
	b := small(t, false)
	b.o.JSON = filepath.Join(b.dir, "rows.json")
	var out strings.Builder
	b.o.Out = &out
	servers := []string{"seatcast", "nchan"}
	got, err := b.pairs(context.Background(), 5, servers, func(_ context.Context, name string) (figures, error) {
		if name == "nchan" {
			return figures{}, fmt.Errorf("nchan: %w: get it", peers.ErrMissing)
		}
		return figures{cpu: 2, rss: 2048, Report: reader.Report{Expected: 10, Deliveries: 10, P99: 3}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.finish(servers, 5, got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "missing: nchan: not installed: get it") {
		t.Errorf("it is not said:\n%s", &out)
	}
	rows := rowsIn(t, b.o.JSON)
	for name, value := range rows[1] {
		isFigure := !slices.Contains([]string{"server", "transport", "conns", "rate", "missing"}, name)
		if isFigure != (value == nil) {
			t.Errorf("%s of a missing server is %v", name, value)
		}
	}
	if rows[0]["missing"] != false || rows[1]["missing"] != true || rows[0]["rss_kb_per_conn"] != 2.0 || rows[0]["deliveries"] != 10.0 {
		t.Errorf("%v", rows)
	}
}

func rowsIn(t *testing.T, file string) (rows []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTheNamesOfARowAreKept(t *testing.T) {
	text, err := json.Marshal((&Options{WS: true}).row("raw", 5, nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"server":"raw","transport":"ws","conns":0,"rate":5,"deliveries":null,"expected":null,"deliveries_per_s":null,` +
		`"cpu_us_per_delivery":null,"p50_ms":null,"p99_ms":null,"max_ms":null,"rss_kb_per_conn":null,"missing":true}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

func TestAChangeThatIsLostFailsTheRun(t *testing.T) {
	got := results{"seatcast": {{}, {wrong: errors.New("1 fault")}}, "raw": {{wrong: errors.New("its own")}}}
	if err := wrongs(got); err == nil || !strings.Contains(err.Error(), "pair 2: 1 fault") {
		t.Errorf("%v", err)
	}
	delete(got, "seatcast")
	if err := wrongs(got); err != nil {
		t.Errorf("a fault of a peer: %v", err)
	}
}

func TestASlopeIsALineThroughTheSamples(t *testing.T) {
	var all []sample
	for i := range 100 {
		all = append(all, sample{at: float64(i), rss: 1000 + 3*float64(i)})
	}
	if got := trend(all, func(s sample) float64 { return s.rss }); math.Abs(got-3) > 1e-9 {
		t.Errorf("%v KB a minute", got)
	}
	if got := slope([]float64{1, 1}, []float64{2, 3}); got != 0 {
		t.Errorf("the slope of one moment is %v", got)
	}
}

func TestSpreadsShowTheBusiestSecond(t *testing.T) {
	if got := spread([]int{0, 10, 30}); got != "0 10 30 (mean 20, most 1.50 times that)" {
		t.Error(got)
	}
	if got := spread(nil); got != "none" {
		t.Error(got)
	}
}

func TestInterruptingAMeasurementLeavesNothing(t *testing.T) {
	b := small(t, false)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := b.open(ctx, "nethttp", 0)
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{s.server.Pid(), s.reader.Pid()}
	cancel()
	if _, err := b.publish(ctx, s, 5, 100, time.Minute, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("publishing ended with %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d lives", pid)
		}
	}
}

func TestDeadSessionsThatWereNotClosedAreSaid(t *testing.T) {
	var out strings.Builder
	b := &bench{o: &Options{Out: &out}}
	b.noteDead([]string{peers.Seatcast}, 5, results{peers.Seatcast: {{closed: 5}, {closed: 2}}})
	b.printNotes([]string{peers.Seatcast}, results{})
	if got := out.String(); strings.Count(got, "! ") != 1 || !strings.Contains(got, "! seatcast, pair 2: 2 of 5") || !strings.Contains(got, "--frames") {
		t.Errorf("said %q", got)
	}
}
