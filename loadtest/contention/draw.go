package contention

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// draw writes a picture to the file of --plot, if there is one: CPU a refusal
// and p99 of every strategy as bars.
func (o *Options) draw(got results) error {
	if o.Plot == "" {
		return nil
	}
	var s strings.Builder
	names := o.measured()
	height := 2*(40+26*len(names)) + 20
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="%d" font-family="sans-serif" font-size="13">`+"\n", height)
	fmt.Fprintf(&s, `<rect width="640" height="%d" fill="#fff"/>`+"\n", height)
	y := chartOf(&s, 24, "CPU of all servers, µs a refusal", names, func(name string) float64 {
		if c := row(name, got[name]).CPUUsPerRefusal; c != nil {
			return *c
		}
		return 0
	})
	chartOf(&s, y+16, "p99 of a request in the storm, ms", names, func(name string) float64 {
		return middle(got[name], func(f figures) time.Duration { return f.p99 })
	})
	s.WriteString("</svg>\n")
	if err := os.WriteFile(o.Plot, []byte(s.String()), 0o644); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}

// chartOf draws one group of bars from y on and returns where it ends.
func chartOf(s *strings.Builder, y int, title string, names []string, value func(string) float64) int {
	most := 0.0
	for _, name := range names {
		most = max(most, value(name))
	}
	fmt.Fprintf(s, `<text x="16" y="%d" font-weight="bold">%s</text>`+"\n", y, title)
	for _, name := range names {
		v, width := value(name), 0.0
		if most > 0 {
			width = 440 * v / most
		}
		color := "#9aa5b1"
		if name == Seatcast {
			color = "#d1495b"
		}
		fmt.Fprintf(s, `<text x="90" y="%d" text-anchor="end">%s</text><rect x="98" y="%d" width="%.1f" height="18" fill="%s"/><text x="%.1f" y="%d">%.1f</text>`+"\n",
			y+24, name, y+10, width, color, 104+width, y+24, v)
		y += 26
	}
	return y + 24
}
