package seatmap_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seatcast/seatmap"
)

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func mustImport(tb testing.TB, file string) (*seatmap.Chart, seatmap.Faults) {
	tb.Helper()
	c, warnings, err := seatmap.ImportChart(file, read(tb, file))
	if err != nil {
		tb.Fatalf("import %s:\n%v", file, err)
	}
	return c, warnings
}

// breaks writes a row as its labels with a bar where neighbours end.
func breaks(row seatmap.Row) string {
	var b strings.Builder
	for i, s := range row.Seats {
		switch {
		case s.Break:
			b.WriteString(" | ")
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(s.Label)
	}
	return b.String()
}

func TestImportReadsAPretixPlan(t *testing.T) {
	c, warnings := mustImport(t, "pretix-theatre-odd-even.json")
	if c.Name != "Small theatre (odd/even)" || c.Seats != 138 || len(c.Sections) != 1 || c.Sections[0].ID != "stalls" {
		t.Errorf("got %q with %d seats in %d sections", c.Name, c.Seats, len(c.Sections))
	}
	if want := []seatmap.Category{{Name: "Stalls A", Color: "#7763E3"}, {Name: "Stalls B", Color: "#3D5A80"}}; !slices.Equal(c.Categories, want) {
		t.Errorf("categories are %v; want %v", c.Categories, want)
	}
	if c.Stage == nil || c.Stage.Label != "STAGE" || len(c.Shapes) != 0 || c.Focal != (seatmap.Point{X: 250, Y: 25}) {
		t.Errorf("stage %+v, shapes %v, focal %v; want the labelled area to be the stage", c.Stage, c.Shapes, c.Focal)
	}
	first := c.Sections[0].Rows[0].Seats[0]
	if first.TicketID != "stalls-A-11" || first.X != 88 || first.Y != 60 || first.I != 0 {
		t.Errorf("the first seat is %+v; want its guid and zone + row + seat as its place", first)
	}
	if len(warnings) != 2 {
		t.Errorf("warnings:\n%v\nwant too few wheelchair spaces and one without companion", warnings)
	}
}

func TestImportBreaksRowsWhereSeatsAreApart(t *testing.T) {
	c, _ := mustImport(t, "pretix-theatre-odd-even.json")
	for _, row := range c.Sections[0].Rows {
		want := ""
		switch row.Label {
		case "A":
			want = "11 9 7 5 3 1 | 2 4 6 8 10 12"
		case "F": // a pillar where 5 and 7 would be
			want = "15 13 11 9 | 3 1 | 2 4 6 8 10 12 14 16"
		default:
			continue
		}
		if got := breaks(row); got != want {
			t.Errorf("row %s is %s; want %s", row.Label, got, want)
		}
	}
}

func TestImportTakesAWheelchairFlagFromOutsideTheSchema(t *testing.T) {
	c, _ := mustImport(t, "pretix-theatre-odd-even.json")
	var spaces []string
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if s.Accessible {
			spaces = append(spaces, s.TicketID)
		}
	})
	if !slices.Equal(spaces, []string{"stalls-K-15"}) {
		t.Errorf("wheelchair spaces are %v", spaces)
	}
}

func TestImportReadsTheOlderShape(t *testing.T) {
	c, _ := mustImport(t, "pretix-older.json")
	if c.Stage == nil || c.Stage.Label != "Bühne" {
		t.Fatalf("stage is %+v; want the area with that text", c.Stage)
	}
	rows := c.Sections[0].Rows
	if got := breaks(rows[0]); got != "1 2 3 4 | 6" {
		t.Errorf("row 1 is %s", got)
	}
	if got := breaks(rows[1]); got != "1 | 5" {
		t.Errorf("row 2 is %s; want two seats measured by their zone", got)
	}
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if s.X < 0 || s.Y < 0 || s.X > c.Width || s.Y > c.Height {
			t.Errorf("seat %s at %g,%g is outside a chart of %g × %g", s.TicketID, s.X, s.Y, c.Width, c.Height)
		}
	})
}

func TestImportDrawsEveryShapeOfArea(t *testing.T) {
	c, warnings := mustImport(t, "pretix-shapes.json")
	if c.Stage == nil || c.Stage.Label != "The stage" || c.Stage.Color != "#bbbbbb" {
		t.Errorf("stage is %+v; want the rectangle the text stands in", c.Stage)
	}
	var points []int
	for _, s := range c.Shapes {
		points = append(points, len(s.Points))
	}
	if want := []int{3, 48, 48, 4, 4}; !slices.Equal(points, want) {
		t.Fatalf("shapes have %v points; want %v", points, want)
	}
	if got := c.Shapes[3].Points[1]; got != (seatmap.Point{X: 300, Y: 190}) {
		t.Errorf("the turned rectangle's second corner is at %v; want it a quarter turn clockwise at 300,190", got)
	}
	if exit := c.Shapes[4]; exit.Label != "Exit" || exit.Color != "transparent" {
		t.Errorf("a lone text became %+v", exit)
	}
	if !slices.ContainsFunc(warnings, func(f seatmap.Fault) bool { return f.Path == "zones[0].areas[7].shape" }) {
		t.Errorf("nobody is told of the shape that is not drawn:\n%v", warnings)
	}
}

func TestImportKeepsZonesOfOneNameApart(t *testing.T) {
	c, _ := mustImport(t, "pretix-shapes.json")
	a, b := c.Sections[0], c.Sections[1]
	if len(c.Sections) != 2 || a.ID != "Side" || b.ID != "Side-2" || a.Name != b.Name {
		t.Errorf("sections are %q and %q of %d", a.ID, b.ID, len(c.Sections))
	}
	if a.Rows[0].Label != "Row 3" || a.Rows[0].Seats[0].Label != "Seat 7" || b.Rows[0].Label != "3" {
		t.Errorf("labels are %+v and %+v; want numbers put into their labels", a.Rows[0], b.Rows[0])
	}
}

func TestImportTellsEveryFaultAndImportsNothing(t *testing.T) {
	for _, name := range []string{"pretix-faults", "chart-faults"} {
		c, _, err := seatmap.ImportChart(name+".json", read(t, name+".json"))
		if err == nil || c != nil {
			t.Fatalf("%s was imported: %v", name, c)
		}
		if want := strings.TrimSpace(string(read(t, name+".txt"))); err.Error() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, err, want)
		}
	}
}

func TestImportSaysWhereAFileStopsBeingJSON(t *testing.T) {
	for body, want := range map[string]string{
		"{\n  \"zones\": [\n    {]\n":        "hall.json: line 3, column 6 (byte 21): not JSON: invalid character ']'",
		"{\"zones\": [":                      "hall.json: line 1, column 11 (byte 11): not JSON: unexpected end",
		"":                                   "not JSON: unexpected end",
		"[1]":                                "neither a pretix seating plan",
		`{"zones": 1e999}`:                   "line 1, column 16 (byte 16): a JSON number 1e999",
		`{"sections": [{"id": 7}]}`:          "(sections.id): a JSON number",
		`{"name":"x","zones":[]}`:            "neither seats nor areas",
		"\ufeff{\"name\":\"x\",\"zones\":7}": "hall.json: zones: it is not a list",
	} {
		c, _, err := seatmap.ImportChart("hall.json", []byte(body))
		if err == nil || c != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ImportChart(%q) = %v, %v; want an error that tells %q", body, c, err, want)
		}
	}
}

func TestOurOwnChartsAreImportedAsTheyAre(t *testing.T) {
	body, sha, err := seatmap.Theatre().Encode()
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := seatmap.ImportChart("theatre.json", body)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", err, warnings)
	}
	if _, again, _ := c.Encode(); again != sha {
		t.Errorf("imported it is %s; want %s", again, sha)
	}
}

func TestWheelchairSpacesFollowTheTable(t *testing.T) {
	for seats, want := range map[int]int{0: 0, 3: 0, 4: 1, 25: 1, 26: 2, 50: 2, 51: 4, 150: 4, 151: 5, 300: 5, 301: 6, 500: 6,
		501: 7, 650: 7, 651: 8, 5000: 36, 5001: 37, 5200: 37, 5201: 38, 18_000: 101, 60_000: 311} {
		if got := seatmap.AccessibleNeeded(seats); got != want {
			t.Errorf("%d seats need %d spaces; want %d", seats, got, want)
		}
	}
}

// soundOrRefused imports a file and checks the promise of ImportChart: faults,
// or a chart that can be sold.
func soundOrRefused(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, body []byte,
) {
	t.Helper()
	c, _, err := seatmap.ImportChart("any.json", body)
	if err != nil {
		if c != nil || err.Error() == "" {
			t.Fatalf("refused with %q, and yet a chart", err)
		}
		return
	}
	if faults, _ := c.Validate(); len(faults) > 0 {
		t.Fatalf("an imported chart has faults:\n%v", faults)
	}
	encoded, sha, err := c.Encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, err := seatmap.DecodeChart(encoded)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if _, again, _ := back.Encode(); again != sha {
		t.Fatalf("read back it is another chart")
	}
	x := back.Index()
	back.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if found, ok := x.Seat(s.TicketID); !ok || found.I != s.I {
			t.Fatalf("the index does not find %q", s.TicketID)
		}
	})
}

func FuzzImportChart(f *testing.F) {
	for _, file := range samples(f) {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, body []byte) { soundOrRefused(t, body) })
}

func samples(tb testing.TB) (files []string) {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		tb.Fatal("no samples", err)
	}
	for _, p := range paths {
		files = append(files, filepath.Base(p))
	}
	return files
}

// Random bytes are seldom JSON; these files always are, with parts that are
// gone, doubled, or of another kind.
func TestImportOfAnyMutilatedPlanTellsFaultsOrGivesAChart(t *testing.T) {
	var bodies [][]byte
	for _, file := range samples(t) {
		bodies = append(bodies, read(t, file))
	}
	rapid.Check(t, func(t *rapid.T) {
		var v any
		if err := json.Unmarshal(rapid.SampledFrom(bodies).Draw(t, "file"), &v); err != nil {
			t.Fatalf("%v", err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "cuts") {
			v = mutilate(t, v)
		}
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%v", err)
		}
		soundOrRefused(t, body)
	})
}

// mutilate walks down at random and changes what it finds there.
func mutilate(t *rapid.T, v any) any {
	down := rapid.IntRange(0, 6).Draw(t, "down") > 0
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || !down {
			break
		}
		key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "key")
		if rapid.IntRange(0, 9).Draw(t, "lose") == 0 {
			delete(v, key)
			return v
		}
		v[key] = mutilate(t, v[key])
		return v
	case []any:
		if len(v) == 0 || !down {
			break
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "i")
		if rapid.IntRange(0, 9).Draw(t, "double") == 0 {
			return append(v, v[i])
		}
		v[i] = mutilate(t, v[i])
		return v
	}
	return rapid.SampledFrom([]any{nil, true, "", "x", -1.0, 1e7, 1e300, []any{}, []any{nil}, map[string]any{}}).Draw(t, "value")
}
