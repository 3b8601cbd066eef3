package seatmap_test

import (
	"strings"
	"testing"
)

func TestOrphansAreSinglesThatCouldBeHelped(t *testing.T) {
	for _, v := range []struct {
		name string
		r    *room
		take string
		want string
	}{
		{"the end of a run", draw("ooooo"), "A-1 A-2", ""},
		{"one away from the end", draw("ooooo"), "A-2 A-3", "A-1"},
		{"the middle of three", draw("ooo"), "A-2", "A-1 A-3"},
		{"two of three leave one whatever they are", draw("ooo"), "A-1 A-2", ""},
		{"the first and last of three, too", draw("ooo"), "A-1 A-3", ""},
		{"the first and last of four leave a pair", draw("oooo"), "A-1 A-4", ""},
		{"one of the last two", draw("oo"), "A-1", ""},
		{"an aisle ends a run", draw("oo | ooo"), "A-1 A-3 A-4", ""},
		{"so does a sold seat", draw("ooxoooo"), "A-5 A-6", "A-4 A-7"},
		{"one that was single before", draw("oxoo"), "A-3 A-4", ""},
		{"a single between two takers counts once", draw("oooooo"), "A-2 A-4", "A-1 A-3"},
		{"a free companion seat is company", draw("wcooo"), "A-4", "A-5"},
		{"a free space is no orphan", draw("wcxx"), "A-2", ""},
		{"who needs a space cannot choose another", draw("owo"), "A-2", ""},
		{"but the seats beside her are chosen like any", draw("owooo"), "A-2 A-4", "A-3 A-5"},
		{"nor is its companion seat", draw("wcxx"), "A-1", ""},
		{"rows are judged apart", draw("oooo", "oooo"), "A-2 B-1", "A-1"},
		{"seats somebody has are passed over", draw("ooxoo"), "A-3", ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			seats := v.r.indexes(strings.Fields(v.take)...)
			if got := v.r.tickets(v.r.s.Orphans(v.r.m, seats)); got != v.want {
				t.Errorf("taking %s of %s leaves orphans %q; want %q", v.take, v.name, got, v.want)
			}
		})
	}
}
