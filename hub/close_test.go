package hub

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// table reads the rows of the table that follows a heading of a page, without
// its own heading.
func table(t *testing.T, page, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", page, heading)
	}
	for line := range strings.Lines(part) {
		if strings.HasPrefix(line, "#") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 2 {
		t.Fatalf("%s has no table below %q", page, heading)
	}
	return rows[1:]
}

// wait is how a page tells when to come back.
func wait(low, high time.Duration) string {
	return fmt.Sprintf("in %d-%d s", int(low.Seconds()), int(high.Seconds()))
}

const protocol = "../docs/protocol.md"

func TestEveryCloseCodeIsDocumentedAsItIs(t *testing.T) {
	told := map[Code]bool{}
	for _, row := range table(t, protocol, "### Close codes") {
		n, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		code := Code(n)
		told[code] = true
		c, there := closings[code]
		again := "no"
		if c.again {
			again = wait(c.min, c.max)
		}
		if !there || row[1] != c.name || row[2] != again || row[3] == "" {
			t.Errorf("%s says of %d: %q; it is %q, come back: %s", protocol, n, row, c.name, again)
		}
	}
	for code, c := range closings {
		if code != CloseGone && !told[code] {
			t.Errorf("%s says nothing of %d %s", protocol, int(code), c.name)
		}
		in := int(code) / 100
		if ofTheRFC := in == 10 && !c.again; code != CloseGone && !ofTheRFC && in != map[bool]int{true: 40, false: 44}[c.again] {
			t.Errorf("%d %s: 40xx means come back, 44xx not like this, and so do those of RFC 6455", int(code), c.name)
		}
	}
}

func TestEveryRefusalIsDocumentedAsItIs(t *testing.T) {
	all := map[string]*refusal{}
	for _, r := range []*refusal{errLeaving, errFull, errBusy, errAddress} {
		all["hub_"+r.reason] = r
	}
	rows := table(t, protocol, "## Refused")
	for _, row := range rows {
		r := all[row[0]]
		if r == nil || row[1] != strconv.Itoa(r.status) || !strings.HasPrefix(row[2], wait(r.min, r.max)) {
			t.Errorf("%s says %q; it is %+v", protocol, row, r)
		}
	}
	if len(rows) != len(all) {
		t.Errorf("%s tells of %d refusals, there are %d", protocol, len(rows), len(all))
	}
}

var literal = regexp.MustCompile(`"(hub_[a-z_]+)"`)

// Those that are given to Prometheus by name.
func TestEveryMetricIsDocumented(t *testing.T) {
	code, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range literal.FindAllStringSubmatch(string(code), -1) {
		if !strings.Contains(string(page), "`"+m[1]) {
			t.Errorf("docs/operating.md says nothing of %s", m[1])
		}
	}
}
