package seatmap

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// drawn is an area of a pretix plan: an outline, or only a text.
type drawn struct {
	Shape
	written bool // nothing but a text
}

const invisible = "transparent"

// area reads what a plan draws besides seats. It has no capacity, so nothing
// of it is for sale.
func (p *plan) area(n node, zone Point) {
	if !n.object() {
		return
	}
	at := position(n.field("position"), zone, false)
	label, writing := caption(n.field("text"))
	d := drawn{Shape: Shape{Label: label, Color: n.field("color").text()}}
	switch kind := n.field("shape").text(); kind {
	case "polygon":
		for _, q := range n.field("polygon").field("points").items() {
			d.Points = append(d.Points, position(q, at, true))
		}
	case "rectangle":
		d.Points = box(at, n.field("rectangle"))
	case "": // the older shape: every area is a rectangle
		d.Points = box(at, n)
	case "circle":
		r := n.field("circle").field("radius").number(0)
		d.Points = circle(at.X, at.Y, r, r)
	case "ellipse":
		r := position(n.field("ellipse").field("radius"), Point{}, true)
		d.Points = circle(at.X, at.Y, r.X, r.Y)
	case "text":
		d.Points, d.written, d.Color = textBox(at, label, writing), true, invisible
	default:
		p.warnings.Add(n.path+".shape", "%q is not drawn", kind)
		return
	}
	if len(d.Points) < 3 {
		n.faults.Add(n.path, "its outline has %d points: at least three are needed", len(d.Points))
		return
	}
	rotate(d.Points, at, n.field("rotation").number(0))
	p.drawn = append(p.drawn, d)
}

// caption reads the text of an area: an object now, a plain text before.
func caption(n node) (label string, writing node) {
	if _, ok := n.value.(map[string]any); ok {
		return strings.TrimSpace(n.field("text").text()), n
	}
	return strings.TrimSpace(n.text()), node{faults: n.faults}
}

// box is a rectangle from its upper left corner.
func box(at Point, n node) []Point {
	w, h := n.field("width").number(0), n.field("height").number(0)
	return rectangle(at.X+w/2, at.Y+h/2, w, h)
}

// textBox is about the room a text takes.
func textBox(at Point, label string, writing node) []Point {
	if writing.field("position").there() {
		at = position(writing.field("position"), at, false)
	}
	size := writing.field("size").number(16)
	return rectangle(at.X, at.Y, 0.6*size*float64(utf8.RuneCountInString(label)+1), size)
}

// rotate turns points clockwise about a place.
func rotate(ps []Point, about Point, degrees float64) {
	if degrees == 0 {
		return
	}
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	for i, p := range ps {
		x, y := p.X-about.X, p.Y-about.Y
		ps[i] = Point{about.X + x*cos - y*sin, about.Y + x*sin + y*cos}
	}
}

var stageName = regexp.MustCompile(`(?i)\b(stage|bühne|scène|escenario|palco|palcoscenico|podium|toneel|pitch)\b`)

// stage makes the area that is called so the chart's stage, and shapes of the
// others. A text alone calls the smallest outline it stands in.
func (p *plan) stage() {
	stage := -1
	for i, d := range p.drawn {
		if !stageName.MatchString(d.Label) {
			continue
		}
		stage = i
		if around := p.around(center(d.Points)); d.written && around >= 0 {
			p.drawn[around].Label = d.Label
			p.drawn = append(p.drawn[:i], p.drawn[i+1:]...)
			if stage = around; around > i {
				stage--
			}
		}
		break
	}
	for i, d := range p.drawn {
		if i == stage {
			p.c.Stage = &d.Shape
			continue
		}
		p.c.Shapes = append(p.c.Shapes, d.Shape)
	}
}

// around returns the smallest outline a place is in, or -1.
func (p *plan) around(at Point) int {
	best, least := -1, math.Inf(1)
	for i, d := range p.drawn {
		low, high := bounds(d.Points)
		size := (high.X - low.X) * (high.Y - low.Y)
		if !d.written && at.X >= low.X && at.X <= high.X && at.Y >= low.Y && at.Y <= high.Y && size < least {
			best, least = i, size
		}
	}
	return best
}

// focus looks at the stage; without one it lies before the middle of the
// first row, taking the plan to be drawn as most are.
func (p *plan) focus() {
	if p.c.Stage != nil {
		p.c.Focal = center(p.c.Stage.Points)
	} else {
		var seats []Point
		p.c.Each(func(_ *Section, _ *Row, s *Seat) { seats = append(seats, Point{s.X, s.Y}) })
		if len(seats) == 0 {
			return
		}
		low, high := bounds(seats)
		p.c.Focal = Point{(low.X + high.X) / 2, low.Y}
	}
	p.c.Focal = Point{tenth(p.c.Focal.X), tenth(p.c.Focal.Y)}
}

func center(ps []Point) Point {
	low, high := bounds(ps)
	return Point{(low.X + high.X) / 2, (low.Y + high.Y) / 2}
}

func bounds(ps []Point) (low, high Point) {
	low, high = ps[0], ps[0]
	for _, q := range ps[1:] {
		low = Point{math.Min(low.X, q.X), math.Min(low.Y, q.Y)}
		high = Point{math.Max(high.X, q.X), math.Max(high.Y, q.Y)}
	}
	return low, high
}
