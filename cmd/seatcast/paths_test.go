package main

import (
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/seatmap/live"
)

// mounted are the routes of a process with one role, by method and path.
func (h *house) mounted(role string) (routes []string) {
	h.t.Helper()
	for _, one := range append(slices.Clone(h.env), "SEATCAST_ROLES="+role, "SEATCAST_SANDBOX_WEBHOOK_URL=http://127.0.0.1:1") {
		name, value, _ := strings.Cut(one, "=")
		h.t.Setenv(name, value)
	}
	cfg, err := loadConfig()
	if err != nil {
		h.t.Fatal(err)
	}
	log, err := newLog(h.t.Output(), cfg.LogLevel)
	if err != nil {
		h.t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	metrics := live.NewMetrics(reg)
	st, err := openStores(h.t.Context(), cfg, metrics, log)
	if err != nil {
		h.t.Fatal(err)
	}
	defer st.close()
	b := builder{cfg: cfg, log: log, st: st, reg: reg, metrics: metrics, addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}}
	a, err := b.build(h.sessions)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range a.echo.Routes() {
		if slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, r.Method) { // a group answers what is none of its routes by pseudo-methods
			routes = append(routes, r.Method+" "+r.Path)
		}
	}
	return routes
}

// proxied is a path of the table of operating.md, and to whom it is sent.
type proxied struct {
	path string
	fits *regexp.Regexp
	to   []string // roles; none: nowhere
}

// proxyTable reads the table.
func proxyTable(t testing.TB) (all []proxied) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| path | to |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([^`]+)`")
	segment := regexp.MustCompile(`\\\{\w+\\\}`)
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		if len(cells) != 2 {
			t.Fatalf("a row of the table is %q", row)
		}
		var to []string
		switch said := strings.TrimRight(cells[1], " |\n"); {
		case said == "any":
			to = []string{"api", "hub", "worker"}
		case !strings.HasPrefix(said, "nowhere"):
			for _, role := range code.FindAllStringSubmatch(said, -1) {
				to = append(to, role[1])
			}
		}
		for _, path := range code.FindAllStringSubmatch(cells[0], -1) {
			fits := strings.ReplaceAll(segment.ReplaceAllString(regexp.QuoteMeta(path[1]), "[^/]+"), "…", ".*")
			all = append(all, proxied{path[1], regexp.MustCompile("^" + fits + "$"), to})
		}
	}
	open := regexp.MustCompile(`\{\w+\}|…`)
	slices.SortFunc(all, func(a, b proxied) int {
		return len(open.ReplaceAllString(b.path, "")) - len(open.ReplaceAllString(a.path, ""))
	})
	return all
}

func TestAProxyThatSendsPathsAsDocumentedFindsEveryRouteAtTheRoleItIsSentTo(t *testing.T) {
	h := newHouse(t, plan{})
	at := map[string][]string{}
	var every []string
	for _, role := range roleNames {
		at[role] = h.mounted(role)
		every = append(every, at[role]...)
	}
	slices.Sort(every)
	used := map[string]bool{}
	table := proxyTable(t)
	for _, route := range slices.Compact(every) {
		_, path, _ := strings.Cut(route, " ")
		i := slices.IndexFunc(table, func(p proxied) bool { return p.fits.MatchString(path) })
		if i < 0 {
			t.Errorf("%s is sent nowhere", route)
			continue
		}
		used[table[i].path] = true
		for _, role := range table[i].to {
			if !slices.Contains(at[role], route) {
				t.Errorf("%s is sent to %s, which does not have it", route, role)
			}
		}
	}
	for _, p := range table {
		if !used[p.path] {
			t.Errorf("%s is sent to %v, and nothing is there", p.path, p.to)
		}
	}
}
