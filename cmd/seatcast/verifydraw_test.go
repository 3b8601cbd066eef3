package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom/draw"
)

// drawFile writes a draw of some tickets and returns where.
func drawFile(t *testing.T, change func([]byte) []byte) (file string, r draw.Record) {
	t.Helper()
	seed := draw.Digest(sha256.Sum256([]byte("seed")))
	a := draw.Announcement{Event: "final", Closes: time.Date(2027, 3, 1, 9, 55, 0, 0, time.UTC),
		Commitment: sha256.Sum256(seed[:]), External: draw.External{Kind: draw.None}}
	l, err := draw.Freeze([]draw.Ticket{{ID: draw.ID{1}}, {ID: draw.ID{2}}, {ID: draw.ID{3}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = draw.New(a, l, seed, nil); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := draw.Write(&text, r, l, l.Ranks(r.Key)); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "draw.ndjson")
	if err := os.WriteFile(file, change(text.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, r
}

func TestAnybodyVerifiesADraw(t *testing.T) {
	honest, r := drawFile(t, func(text []byte) []byte { return text })
	forged, _ := drawFile(t, func(text []byte) []byte { return bytes.Replace(text, []byte(",1]"), []byte(",4]"), 1) })
	cut, _ := drawFile(t, func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] })
	ticket := draw.ID{2}.String()
	for _, c := range []struct {
		name string
		args []string
		out  string // has
		err  string // has; empty: none
	}{
		{"honest", []string{honest}, "all 3 follow from the key", ""},
		{"who is trusted", []string{honest}, "you trust the organiser", ""},
		{"a ticket", []string{honest, "--ticket", ticket}, "Ticket " + ticket + " has rank ", ""},
		{"of its receipt", []string{honest, "--announcement", r.Announcement.Digest().String()}, "was held as announced", ""},
		{"of another receipt", []string{honest, "--announcement", strings.Repeat("0", 64)}, "", "another announcement"},
		{"a ticket that was dropped", []string{honest, "--ticket", draw.ID{9}.String()}, "", "not on the list"},
		{"a rank that is not drawn", []string{forged}, "", "a rank is not the one its score gives"},
		{"a ticket missing", []string{cut}, "", "not those of the root"},
		{"no ticket", []string{honest, "--ticket", "x"}, "", "--ticket"},
		{"no file", []string{honest + "x"}, "", "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), append([]string{"verify-draw"}, c.args...), &out, &out)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v", err)
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("it says %s", out.String())
			}
		})
	}
}
