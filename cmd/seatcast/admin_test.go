package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/web"
)

// call runs the program in this process and returns what it wrote.
func call(t testing.TB, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	err = run(t.Context(), args, &out, &complaints)
	return out.String(), complaints.String(), err
}

// must is a call that succeeds; it returns what was written, trimmed.
func must(t testing.TB, args ...string) string {
	t.Helper()
	out, _, err := call(t, args...)
	if err != nil {
		t.Fatalf("seatcast %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out)
}

const pretixPlan = "../../seatmap/testdata/pretix-theatre-odd-even.json"

func file(t *testing.T, name string, body []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMigratingTwiceIsMigratingOnce(t *testing.T) {
	pool := devtest.Postgres(t)
	for range 2 {
		if said := must(t, "migrate", "--postgres", pool.Config().ConnString()); said != "the schema is up to date" {
			t.Errorf("it said %q", said)
		}
	}
}

func TestImportingAChartTwiceIsImportingItOnce(t *testing.T) {
	pool := devtest.Postgres(t)
	t.Setenv("SEATCAST_POSTGRES_URL", pool.Config().ConnString())
	sha := must(t, "import", "chart", pretixPlan)
	if !shaPattern.MatchString(sha) {
		t.Fatalf("it printed %q", sha)
	}
	if again := must(t, "import", "chart", pretixPlan); again != sha {
		t.Errorf("the second time it printed %q, not %q", again, sha)
	}
	// What is served can be imported: the bytes are the chart.
	var body []byte
	if err := pool.QueryRow(t.Context(), `SELECT body FROM charts WHERE sha = $1`, sha).Scan(&body); err != nil {
		t.Fatal(err)
	}
	if again := must(t, "import", "chart", file(t, "served.json", body)); again != sha {
		t.Errorf("imported as it is served it is %q, not %q", again, sha)
	}
	if n := charts(t, pool.Config().ConnString()); n != 1 {
		t.Errorf("%d charts are stored", n)
	}
}

func charts(t *testing.T, url string) (n int) {
	t.Helper()
	pool, err := openPool(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM charts`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestABadChartNamesFilePathAndReasonOfEveryFaultAndImportsNothing(t *testing.T) {
	url := devtest.PostgresURL(t)
	bad, err := os.ReadFile("../../seatmap/testdata/pretix-faults.json")
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile("../../seatmap/testdata/pretix-faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "plan.json", bad)
	out, _, err := call(t, "import", "chart", "--postgres", url, path)
	if err == nil || out != "" {
		t.Fatalf("it printed %q, %v", out, err)
	}
	told := strings.Split(err.Error(), "\n")
	if want := strings.Split(strings.TrimSpace(string(known)), "\n"); len(told) != len(want) {
		t.Errorf("%d faults told, there are %d", len(told), len(want))
	}
	for _, line := range told {
		if !strings.HasPrefix(line, path+": ") || strings.Count(line, ": ") < 2 {
			t.Errorf("not file, path and reason: %s", line)
		}
	}
	if n := charts(t, url); n != 0 {
		t.Errorf("%d charts were imported", n)
	}
	if _, _, err := call(t, "import", "chart", "--postgres", url, "/nonexistent/plan.json"); err == nil || !strings.Contains(err.Error(), "/nonexistent/plan.json") {
		t.Errorf("a missing file: %v", err)
	}
}

// stallsChart is two categories of twelve seats.
func stallsChart(t *testing.T) string {
	t.Helper()
	c := seatmap.Chart{Name: "Old Court", Width: 200, Height: 100, Focal: seatmap.Point{X: 100},
		Categories: []seatmap.Category{{Name: "Stalls A"}, {Name: "Stalls B"}}, Seats: 12,
		Sections: []seatmap.Section{{ID: "stalls", Name: "Stalls"}}}
	for r, category := range []string{"Stalls A", "Stalls B"} {
		row := seatmap.Row{Label: string(rune('A' + r))}
		for n := range 6 {
			i := 6*r + n
			row.Seats = append(row.Seats, seatmap.Seat{TicketID: "t" + string(rune('a'+i)), I: i, Label: string(rune('1' + n)),
				X: float64(20 + 20*n), Y: float64(20 + 20*r), Category: category})
		}
		c.Sections[0].Rows = append(c.Sections[0].Rows, row)
	}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "hall.json", body)
}

// From nothing to a sale with the words of the README, on a node that serves it.
func TestAnEventOfOnesOwnIsCreatedOpenedAndClosed(t *testing.T) {
	h := newHouse(t, plan{})
	for _, setting := range h.env {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	id := must(t, "event", "create", "--chart", stallsChart(t), "--name", "Spring Gala", "--venue", "Old Court", "--zone", "Europe/Paris",
		"--starts", "2037-06-01T20:00", "--opens", "2026-03-01T10:00", "--prices", "Stalls A=8500,Stalls B=6000", "--fees", "Service=5%,Facility=250,Order=150/order", "--currency", "EUR",
		"--mode", "hot", "--guard-map", "--orphans", "refuse", "--hold", "6m", "--pay", "3m", "--cap", "15m", "--seats-per-booking", "4", "--seats-per-user", "6", "--seats-per-card", "12",
		"--holds-per-user", "2", "--holds-per-hour", "9", "--cool-down", "45s")
	if id != "spring-gala" {
		t.Errorf("it printed %q", id)
	}
	var e struct {
		catalog.Event
		Starts, Opens time.Time
	}
	for line := range strings.Lines(must(t, "event", "list", "--json")) {
		if strings.Contains(line, `"spring-gala"`) {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "Spring Gala" || e.Venue != "Old Court" || e.Zone != "Europe/Paris" || e.Mode != catalog.Hot || !e.Guarded || e.Orphans != seatmap.OrphansRefuse || e.State != catalog.Closed || e.Currency != "EUR" ||
		!e.Starts.Equal(time.Date(2037, 6, 1, 20, 0, 0, 0, paris)) || !e.Opens.Equal(time.Date(2026, 3, 1, 10, 0, 0, 0, paris)) ||
		e.Prices["Stalls A"] != 8500 || e.Prices["Stalls B"] != 6000 || e.Terms.Hold != 6*time.Minute || e.Terms.Pay != 3*time.Minute ||
		e.Terms.Cap != 15*time.Minute || e.Terms.SeatsPerBooking != 4 || e.Terms.SeatsPerUser != 6 || e.Terms.SeatsPerCard != 12 ||
		e.Terms.HoldsPerUser != 2 || e.Terms.HoldsPerHour != 9 || e.Terms.CoolDown != 45*time.Second {
		t.Errorf("created as %+v", e)
	}

	n := h.node()
	// The token is of the same key, issuer, audience and claims as the node's.
	ann := shopper{t, n.url, must(t, "token", "--user", "ann")}
	ann.hold("spring-gala", "", "ta").want(t, http.StatusForbidden, "sale_not_open")
	for _, verb := range []string{"open", "close"} {
		if _, _, err := call(t, "event", verb, "nope"); err == nil || err.Error() != `there is no event "nope": see seatcast event list` {
			t.Errorf("%s of an event that there is not: %v", verb, err)
		}
	}
	must(t, "event", "open", "spring-gala")
	eventually(t, 5*time.Second, "the node sells it", func() bool { return ann.hold("spring-gala", "k", "ta").status/100 == 2 })
	must(t, "event", "close", "spring-gala")
	eventually(t, 5*time.Second, "the node sells it no more", func() bool { return ann.hold("spring-gala", "", "tb").Code == "sale_not_open" })

	lines := strings.Split(must(t, "event", "list"), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(lines[2], "spring-gala") || !strings.Contains(lines[2], "67.00 EUR") || !strings.HasSuffix(lines[2], "closed  kept") {
		t.Errorf("listed as\n%s", strings.Join(lines, "\n"))
	}
}

func TestTermsLeftOutAreTheUsualOnes(t *testing.T) {
	t.Setenv("SEATCAST_POSTGRES_URL", devtest.PostgresURL(t))
	sha := must(t, "import", "chart", stallsChart(t))
	must(t, "event", "create", "--chart", sha, "--id", "plain", "--name", "Plain", "--venue", "V", "--zone", "Asia/Tokyo",
		"--starts", "2037-06-01T20:00:00+09:00", "--opens", "2037-01-01T10:00", "--prices", "Stalls A=8500,Stalls B=0", "--currency", "JPY")
	var e catalog.Event
	if err := json.Unmarshal([]byte(must(t, "event", "list", "--json")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Terms != catalog.DefaultTerms || e.Mode != catalog.Ordinary || e.Guarded || e.Orphans != seatmap.OrphansWarn || e.ChartSHA != sha {
		t.Errorf("created as %+v", e)
	}
}

func TestAWrongEventTellsEachFaultAndIsNotCreated(t *testing.T) {
	t.Setenv("SEATCAST_POSTGRES_URL", devtest.PostgresURL(t))
	chart := stallsChart(t)
	create := func(change ...string) error {
		args := map[string]string{"--chart": chart, "--name": "N", "--venue": "V", "--zone": "Europe/Paris", "--starts": "2037-06-01T20:00",
			"--opens": "2037-01-01T10:00", "--prices": "Stalls A=8500,Stalls B=6000", "--currency": "EUR"}
		for i := 0; i < len(change); i += 2 {
			args[change[i]] = change[i+1]
		}
		line := []string{"event", "create"}
		for flag, value := range args {
			line = append(line, flag+"="+value)
		}
		_, _, err := call(t, line...)
		return err
	}
	for _, tt := range []struct{ change, want []string }{
		{[]string{"--zone", "Paris"}, []string{`zone: "Paris" is no IANA time zone`}},
		{[]string{"--starts", "tomorrow", "--opens", "2027-03-28T02:30", "--prices", "Stalls A=85.00"},
			[]string{`starts: "tomorrow" is no time`, "opens: 2027-03-28T02:30 does not exist in Europe/Paris", "prices: "}},
		{[]string{"--prices", "Stalls A=1,Circle=2", "--currency", "EURO", "--opens", "2038-01-01T10:00", "--hold", "-1s"},
			[]string{`"Stalls B" of the chart has none`, `no category "Circle"`, "currency: ", "opens: ", "hold: "}},
		{[]string{"--mode", "lukewarm"}, []string{`--mode must be one of "hot","ordinary"`}},
		{[]string{"--hold", "soon"}, []string{"--hold"}},
		{[]string{"--chart", strings.Repeat("0", 64)}, []string{"no such chart"}},
		{[]string{"--id", "search"}, []string{"id: "}},
	} {
		err := create(tt.change...)
		if err == nil {
			t.Errorf("%v was created", tt.change)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: not told %q in\n%v", tt.change, want, err)
			}
		}
	}
	if listed := must(t, "event", "list", "--json"); listed != "" {
		t.Errorf("there is %s", listed)
	}
	for _, do := range []string{"open", "close"} {
		if _, _, err := call(t, "event", do, "nothing"); err == nil || !strings.Contains(err.Error(), `event "nothing"`) {
			t.Errorf("%s of an event there is none of: %v", do, err)
		}
	}
}

func TestATokenIsOfTheServersKeyIssuerAudienceAndClaims(t *testing.T) {
	key := web.GenerateKey()
	t.Setenv("SEATCAST_SESSION_KEY", key)
	t.Setenv("SEATCAST_SESSION_ISSUER", "https://login.example")
	t.Setenv("SEATCAST_SESSION_AUDIENCE", "seatcast")
	t.Setenv("SEATCAST_SESSION_CLAIMS", "user=account")
	token := must(t, "token", "--user", "ann", "--ttl", "5m")
	parsed, err := web.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(o web.SessionOptions) (string, error) {
		o.Key = parsed
		s, err := web.OpenSessions(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s.Verify(token)
	}
	o := web.SessionOptions{Issuer: "https://login.example", Audience: "seatcast", Claims: "user=account"}
	if user, err := verify(o); err != nil || user != "ann" {
		t.Errorf("the server it is for reads %q, %v", user, err)
	}
	o.Now = func() time.Time { return time.Now().Add(6 * time.Minute) }
	if _, err := verify(o); err == nil {
		t.Error("it outlived its five minutes")
	}
	for _, args := range [][]string{{"token"}, {"token", "--user", ""}, {"token", "--user", "ann", "--ttl", "-1m"}, {"token", "--user", "ann", "--key", "sesame:open"}} {
		if out, _, err := call(t, args...); err == nil || out != "" || strings.Contains(err.Error(), "open") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

func TestHelpIsThereForEveryCommand(t *testing.T) {
	for _, tt := range []struct {
		command string
		names   []string
	}{
		{"", []string{"serve", "demo", "migrate", "import chart", "event create", "event open", "event close", "event list", "token"}},
		{"serve", nil}, // its variables are TestEveryKnobIsDocumented's
		{"demo", []string{"--addr", "--data", "--event", "--crowd", "theatre, arena, stadium", "/seatcast-demo"}},
		{"migrate", []string{"--postgres", "$SEATCAST_POSTGRES_URL"}},
		{"import chart", []string{"--postgres", "<file>", "pretix"}},
		{"event create", []string{"--postgres", "--chart", "--id", "--name", "--venue", "--zone", "--starts", "--opens", "--prices", "--currency",
			"--mode", "--hold", "--pay", "--cap", "--seats-per-booking", "--seats-per-user", "--seats-per-card",
			"--holds-per-user", "--holds-per-hour", "--cool-down", "default 8m", "default 5m", "default 20m", "default 10"}},
		{"event open", []string{"<event>"}},
		{"event close", []string{"<event>"}},
		{"event list", []string{"--json"}},
		{"token", []string{"--key", "--issuer", "--audience", "--claims", "--user", "--role", "--ttl", "$SEATCAST_SESSION_KEY", "$SEATCAST_SESSION_ISSUER",
			"$SEATCAST_SESSION_AUDIENCE", "$SEATCAST_SESSION_CLAIMS"}},
	} {
		out, complaints, err := call(t, append(strings.Fields(tt.command), "--help")...)
		if err != nil || complaints != "" || !strings.HasPrefix(out, "Usage: seatcast") {
			t.Errorf("%s --help: %v, %s\n%s", tt.command, err, complaints, out)
		}
		for _, name := range tt.names {
			if !strings.Contains(out, name) {
				t.Errorf("%s --help says nothing of %s:\n%s", tt.command, name, out)
			}
		}
	}
}

func TestAWrongCallSaysWhatIsWrongAndWhereToLook(t *testing.T) {
	settings(t, nil)
	for line, want := range map[string]string{
		"frob":                     `there is no command "frob"; see seatcast --help`,
		"event":                    `expected one of "create", "open", "close", "chart", "list"; see seatcast event --help`,
		"event frob":               "see seatcast event --help",
		"--frob":                   "unknown flag --frob; see seatcast --help",
		"serve now":                "unexpected argument now; see seatcast serve --help",
		"migrate":                  "missing flags: --postgres=URL (or SEATCAST_POSTGRES_URL in the environment); see seatcast migrate --help",
		"token":                    "missing flags: --key=KEY (or SEATCAST_SESSION_KEY in the environment), --user=STRING; see seatcast token --help",
		"help frob":                `there is no command "frob"; see seatcast --help`,
		"event create --name Gala": "missing flags: --chart=FILE",
	} {
		out, _, err := call(t, strings.Fields(line)...)
		if err == nil || out != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("seatcast %s: %v\n%s", line, err, out)
		}
	}
	settings(t, map[string]string{"POSTGRES_URL": ""})
	for _, line := range []string{"migrate", "event list"} {
		if _, _, err := call(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), "is no postgres:// or postgresql:// URL") {
			t.Errorf("seatcast %s with an empty variable: %v", line, err)
		}
	}
	out, complaints, err := call(t)
	if err == nil || out != "" || !strings.HasPrefix(complaints, "Usage: seatcast <command>") {
		t.Errorf("called without a word: %v\n%s%s", err, out, complaints)
	}
	for _, line := range []string{"", "event create", "serve"} {
		if asked := must(t, append([]string{"help"}, strings.Fields(line)...)...); asked != must(t, append(strings.Fields(line), "--help")...) {
			t.Errorf("help %s is\n%s", line, asked)
		}
	}
}

func TestTheProgramTellsItsVersion(t *testing.T) {
	var out, wrong strings.Builder
	if err := run(t.Context(), []string{"--version"}, &out, &wrong); err != nil || !strings.HasPrefix(out.String(), "seatcast ") || !strings.Contains(out.String(), runtime.Version()) {
		t.Errorf("%v %q %q", err, out.String(), wrong.String())
	}
}
