package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/bls"

	"seatcast/waitingroom/draw"
)

// drawFile writes a draw of some tickets and returns where.
func drawFile(t *testing.T, change func([]byte) []byte) (file string, r draw.Record) {
	t.Helper()
	return drawFileWith(t, draw.External{Kind: draw.None}, nil, change)
}

func drawFileWith(t *testing.T, e draw.External, told []byte, change func([]byte) []byte) (file string, r draw.Record) {
	t.Helper()
	seed := draw.Digest(sha256.Sum256([]byte("seed")))
	a := draw.Announce(draw.Terms{Event: "final", Closes: draw.Quicknet(800).At(), Commitment: sha256.Sum256(seed[:]), External: e})
	l, err := draw.Freeze([]draw.Ticket{{ID: draw.ID{1}}, {ID: draw.ID{2}}, {ID: draw.ID{3}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = draw.New(a, l, seed, told); err != nil {
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

// byQuicknet is round 1000, which came out ten minutes after the list was to close.
func byQuicknet(t *testing.T) (draw.External, []byte) {
	t.Helper()
	sig, err := hex.DecodeString("b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39")
	if err != nil {
		t.Fatal(err)
	}
	return draw.Quicknet(1000), sig
}

// byHouse is a round of a beacon of the house's own, which says of it what it likes.
func byHouse(t *testing.T) (draw.External, []byte) {
	t.Helper()
	key, err := bls.KeyGen[bls.KeyG2SigG1](make([]byte, 32), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	e := draw.Quicknet(1000)
	e.PublicKey = public
	round := sha256.Sum256(binary.BigEndian.AppendUint64(nil, e.Round))
	return e, bls.Sign(key, round[:])
}

func TestAnybodyVerifiesADraw(t *testing.T) {
	honest, r := drawFile(t, func(text []byte) []byte { return text })
	forged, _ := drawFile(t, func(text []byte) []byte { return bytes.Replace(text, []byte(",1]"), []byte(",4]"), 1) })
	cut, _ := drawFile(t, func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] })
	same := func(text []byte) []byte { return text }
	e, told := byQuicknet(t)
	quicknet, q := drawFileWith(t, e, told, same)
	moved, _ := drawFileWith(t, e, told, func(text []byte) []byte {
		return bytes.Replace(text, []byte(`"genesis":1692803367`), []byte(`"genesis":1792803367`), 1)
	})
	e, told = byHouse(t)
	house, _ := drawFileWith(t, e, told, same)
	is := func(text string) string {
		file, _ := drawFile(t, func([]byte) []byte { return []byte(text) })
		return file
	}
	record, _ := drawFile(t, func(text []byte) []byte { return text[:bytes.IndexByte(text, '\n')+1] })
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
		{"what its round is", []string{quicknet}, "round 1000 of quicknet, the beacon of the League of Entropy, which came out at 2023-08-23T15:59:24Z, 10m0s after", ""},
		{"without a root", []string{quicknet}, "Not checked: that the list was frozen before 2023-08-23T15:59:24Z.", ""},
		{"with the root", []string{quicknet, "--root", strings.ToUpper(q.Root.String())}, "If it was saved before 2023-08-23T15:59:24Z, the list was frozen before", ""},
		{"with another root", []string{quicknet, "--root", strings.Repeat("0", 64)}, "", "another root than the one you saved"},
		{"without a receipt", []string{quicknet}, "Not checked: that this was announced before anybody joined.", ""},
		{"an old round that is said to be new", []string{moved}, "", "the first round of quicknet was at 1692803367"},
		{"a beacon of the house", []string{house}, "as trustworthy as whoever runs it, which may be the house", ""},
		{"what its rounds are", []string{house}, "of an unknown beacon", ""},
		{"a ticket that was dropped", []string{honest, "--ticket", draw.ID{9}.String()}, "", "not on the list"},
		{"a rank that is not drawn", []string{forged}, "", "a rank is not the one its score gives"},
		{"a ticket missing", []string{cut}, "", "not those of the root"},
		{"no ticket", []string{honest, "--ticket", "x"}, "", "--ticket"},
		{"an empty file", []string{is("")}, "", "this is no draw: it is empty. Once the draw is held"},
		{"a page", []string{is("<!doctype html>")}, "", "this is no draw: the first line is not the record of one"},
		{"a problem", []string{is(`{"type":"about:blank","code":"not_drawn","status":404}`)}, "", "this is no draw: its first line has not both an announcement and a key"},
		{"a record without its tickets", []string{record}, "", "this is no draw: it has the record of one, and none of its 3 tickets"},
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

func TestADigestThatIsNoneAccusesNobody(t *testing.T) {
	file, _ := drawFile(t, func(text []byte) []byte { return text })
	for _, flag := range []string{"--root", "--announcement"} {
		for _, digest := range []string{"abc", strings.Repeat("g", 64), strings.Repeat("0", 63)} {
			var out bytes.Buffer
			err := run(t.Context(), []string{"verify-draw", file, flag, digest}, &out, &out)
			if err == nil || !strings.Contains(err.Error(), flag+" is 64 hex digits") || strings.Contains(err.Error(), "this draw") {
				t.Errorf("%s %s: %v", flag, digest, err)
			}
		}
	}
}
