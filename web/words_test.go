package web_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"seatcast/internal/browsertest"
)

// speak are the folders whose handlers answer a shopper with problems.
var speak = []string{".", "../holds", "../checkout", "../catalog", "../seatmap/live", "../waitingroom"}

// operatorsOnly are files whose problems only an operator's calls meet.
var operatorsOnly = []string{"keyed.go", "../holds/admin.go", "../holds/office.go", "../checkout/admin.go", "../checkout/pick.go", "../checkout/adminrefunds.go",
	"../checkout/admincancel.go", "../catalog/admin.go", "../waitingroom/admin.go"}

// unheard are codes of the other files that no page is told, and why.
var unheard = map[string]string{
	"bad_signature": "a payment provider's webhook is told",
	"unknown_draw":  "the page asks with the key it was told",
	"unknown_shard": "no ticket leads to it",
}

// ours are codes the page makes itself.
var ours = []string{"offline", "best_taken", "card_incomplete", "card_unreachable", "card_failed", "payment_ended", "origin_not_allowed"}

// codesOf are the codes a file tells: a Code that is set, and the first word of
// refuse and Bad.
func codesOf(t *testing.T, file string) (codes []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	note := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if code, err := strconv.Unquote(lit.Value); err == nil {
				codes = append(codes, code)
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				note(n.Value)
			}
		case *ast.AssignStmt:
			if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "Code" {
				note(n.Rhs[0])
			}
		case *ast.CallExpr:
			if name := called(n); len(n.Args) > 0 && (name == "refuse" || name == "Bad") {
				note(n.Args[0])
			}
		}
		return true
	})
	return codes
}

func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// documented are the codes of the table of problems in docs/booking.md.
func documented(t *testing.T) (codes []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/booking.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([a-z_]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !regexp.MustCompile(`^ \d{3} $`).MatchString(cells[1]) {
			continue
		}
		named, _, _ := strings.Cut(cells[2], "(") // in brackets are members
		for _, m := range word.FindAllStringSubmatch(named, -1) {
			codes = append(codes, m[1])
		}
	}
	return codes
}

// worded are what the catalogue has words for among its problems or losses, in each
// language the same: the compiler of the client sees to it.
func worded(t *testing.T, among string) []string {
	t.Helper()
	p := browsertest.Open(t, client(t, noAPI))
	return browsertest.Eval[[]string](p, browsertest.Modules+`const { t } = await use('lang.js'); return Object.keys(t.`+among+`);`)
}

func TestEveryProblemAShopperMayMeetIsSaidInWords(t *testing.T) {
	where := map[string]string{}
	for _, folder := range speak {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || slices.Contains(operatorsOnly, filepath.ToSlash(file)) {
				continue
			}
			for _, code := range codesOf(t, file) {
				where[code] = file
			}
		}
	}
	if len(where) < 40 {
		t.Fatalf("only these codes are in the sources: %v", slices.Sorted(maps.Keys(where)))
	}
	for _, code := range documented(t) {
		where[code] = "docs/booking.md"
	}
	said := worded(t, "problems")
	for code, file := range where {
		if slices.Contains(said, code) == (unheard[code] != "") {
			t.Errorf("%s of %s: words %v, not heard %q", code, file, slices.Contains(said, code), unheard[code])
		}
	}
	for _, code := range said {
		if where[code] == "" && !slices.Contains(ours, code) {
			t.Errorf("the page has words for %s, which nobody tells", code)
		}
	}
}

// lostFor finds why checkout calls a booking lost.
var lostFor = regexp.MustCompile(`(?m)^\tReason\w+ += "(\w+)"`)

func TestEveryReasonAnOrderIsLostForIsSaidInWords(t *testing.T) {
	source, err := os.ReadFile("../checkout/checkout.go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, m := range lostFor.FindAllStringSubmatch(string(source), -1) {
		if m[1] != "seats_gone" { // what seats_lost says by itself
			want = append(want, m[1])
		}
	}
	slices.Sort(want)
	said := worded(t, "losses")
	slices.Sort(said)
	if len(want) < 5 || !slices.Equal(said, want) {
		t.Errorf("the page has words for %v, and bookings are lost for %v", said, want)
	}
}
