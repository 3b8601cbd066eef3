package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type rule struct {
	folder string
	ours   []string
	why    string
}

// mayImport says which packages of ours a folder may import. What one feature
// needs of another it declares as a small interface in its own file, and cmd
// hands it over.
var mayImport = []rule{
	{"seatmap", nil, "seatmap is the vocabulary everybody shares: it stands on the standard library alone"},
	{"hub", nil, "hub knows topics and numbered frames, no seats: it can be read and used alone"},
	{"migrations", nil, "migrations are SQL and the order it runs in"},
	{"web", nil, "web is HTTP manners; the meaning of an error is its feature's"},
	{"seatmap/live", []string{"seatmap", "web"}, "features meet in cmd, never sideways"},
	{"seatmap/history", []string{"seatmap", "web", "internal/pg"}, "features meet in cmd, never sideways"},
	{"holds", []string{"seatmap", "web"}, "features meet in cmd, never sideways"},
	{"checkout", []string{"seatmap", "web", "internal/pg", "checkout/outgoing"}, "features meet in cmd, never sideways; what happens is announced in the transaction in which it does"},
	{"checkout/outgoing", []string{"seatmap", "web", "internal/pg"}, "outgoing carries messages; what a booking is, it does not know"},
	{"checkout/tickets", []string{"seatmap", "web", "internal/pg"}, "features meet in cmd, never sideways"},
	{"checkout/crash", []string{"checkout", "checkout/sandbox", "holds", "seatmap", "web"}, "crash kills a desk that sells from the real gate, and has only tests"},
	{"catalog", []string{"seatmap", "web", "internal/pg"}, "features meet in cmd, never sideways"},
	{"waitingroom", []string{"seatmap", "web", "internal/pg", "waitingroom/draw"}, "features meet in cmd, never sideways"},
	{"waitingroom/draw", nil, "whoever checks a draw reads this package and no other"},
	{"internal/audit", []string{"web"}, "audit writes down calls; it knows nothing of what they mean"},
	{"internal/idempotency", []string{"web"}, "idempotency remembers answers; it knows nothing of what they mean"},
	{"internal/jobs", []string{"web"}, "jobs shows the queue; it knows nothing of what a job does"},
	{"internal/pg", []string{"seatmap"}, "pg says what errors of Postgres mean; it knows nothing of who asked"},
	{"internal/devstack", []string{"migrations"}, "devstack starts servers; it knows nothing of what runs on them but the schema"},
	{"internal/browsertest", nil, "browsertest opens pages; it knows nothing of what is on them"},
	{"loadtest", []string{"seatmap", "internal/devstack", "checkout", "checkout/sandbox", "waitingroom/draw"}, "loadtest is a client like any other; what became of the money the sandbox knows, and a draw anybody checks"},
}

// technologies have their own files in a feature: the words and rules in the
// file named after the package know none of them, and http.go alone speaks HTTP,
// admin.go, and what begins so, that of operators.
var technologies = []string{
	"github.com/labstack/echo/v4", "github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "github.com/nats-io/nats.go",
}

var features = []string{"holds", "checkout", "checkout/tickets", "checkout/outgoing", "catalog", "seatmap", "seatmap/live", "seatmap/history", "hub", "waitingroom", "waitingroom/draw"}

const module = "seatcast/"

func TestFoldersImportOnlyWhatTheHouseAllows(t *testing.T) {
	eachGoFile(t, func(folder, file string, imports []string) {
		for _, imp := range imports {
			own, isOurs := strings.CutPrefix(imp, module)
			if !isOurs {
				continue
			}
			if strings.HasPrefix(own, "cmd/") {
				t.Errorf("%s imports %s: nobody imports cmd", file, imp)
			}
			checkFolder(t, folder, file, own)
		}
	})
}

// checkFolder holds one import of ours against the rule of the folder, or of
// the nearest folder above it that has one. What lies inside that folder is its
// own, and tests may start servers and browsers.
func checkFolder(t *testing.T, folder, file, own string) {
	for at := folder; at != "."; at = path.Dir(at) {
		i := slices.IndexFunc(mayImport, func(r rule) bool { return r.folder == at })
		if i < 0 {
			continue
		}
		r := mayImport[i]
		isTest := strings.HasSuffix(file, "_test.go")
		switch {
		case own == at || strings.HasPrefix(own, at+"/") && !slices.Contains(features, own):
		case isTest && (strings.HasPrefix(own, "internal/devstack") || own == "internal/browsertest"):
		case !slices.Contains(r.ours, own):
			t.Errorf("%s imports %s%s: %s", file, module, own, r.why)
		}
		return
	}
}

func TestEachTechnologyHasItsFile(t *testing.T) {
	eachGoFile(t, func(folder, file string, imports []string) {
		if !slices.Contains(features, folder) || strings.HasSuffix(file, "_test.go") {
			return
		}
		name := path.Base(file)
		isWords := name == path.Base(folder)+".go" && folder != "hub"
		for _, imp := range imports {
			technology := slices.IndexFunc(technologies, func(of string) bool { return imp == of || strings.HasPrefix(imp, of+"/") })
			switch {
			case technology < 0:
			case isWords:
				t.Errorf("%s imports %s: the file named after its package is words and rules", file, imp)
			case (technologies[technology] == "github.com/labstack/echo/v4") != (name == "http.go" || strings.HasPrefix(name, "admin")):
				t.Errorf("%s imports %s: http.go and admin*.go speak HTTP and nothing else, and nothing else does", file, imp)
			}
		}
	})
}

func TestSeatmapStandsOnTheStandardLibrary(t *testing.T) {
	eachGoFile(t, func(folder, file string, imports []string) {
		if folder != "seatmap" || strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, imp := range imports {
			if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s: seatmap is for everybody, it brings nobody else along", file, imp)
			}
		}
	})
}

func eachGoFile(t *testing.T, f func(folder, file string, imports []string)) {
	t.Helper()
	root := os.DirFS("../..")
	seen := 0
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(p) != ".go" {
			return nil
		}
		seen++
		f(path.Dir(p), p, importsOf(t, p))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Fatalf("saw only %d Go files: the walk is broken", seen)
	}
}

func importsOf(t *testing.T, p string) []string {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", p), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, spec := range parsed.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imp)
	}
	return imports
}
