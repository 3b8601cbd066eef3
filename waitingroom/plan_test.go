package waitingroom_test

import (
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

// drawn is a plan of a draw whose list closes at noon.
func drawn(e draw.External, opens time.Duration) *waitingroom.Plan {
	p := plan(60, 1, 10)
	p.Joins, p.Closes, p.Opens, p.External = noon.Add(-time.Hour), noon, noon.Add(opens), e
	return &p
}

func TestTheBeaconsRoundIsOutOnlyWhenPeopleHadTimeToSaveTheRoot(t *testing.T) {
	p := drawn(draw.External{Kind: draw.Drand}, time.Hour)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if wait := p.External.At().Sub(noon); !p.External.Known() || wait < 10*time.Minute || wait > 10*time.Minute+3*time.Second {
		t.Errorf("%+v is out %v after the list closes", p.External, wait)
	}
	round := func(after time.Duration) uint64 { return draw.Quicknet(0).RoundAfter(noon.Add(after)) }
	forged := draw.Quicknet(round(time.Hour))
	forged.Genesis += 3600
	house := draw.External{Kind: draw.Drand, PublicKey: draw.Hex{1}, Genesis: noon.Unix(), Period: 1, Round: 30}
	for name, c := range map[string]struct {
		e     draw.External
		opens time.Duration
		says  string // empty: nothing
	}{
		"a round a minute later":                  {draw.Quicknet(round(time.Minute)), 2 * time.Minute, ""},
		"one that is named by its number":         {draw.External{Kind: draw.Drand, Round: round(time.Minute)}, 2 * time.Minute, ""},
		"one a few seconds later":                 {draw.External{Kind: draw.Drand, Round: round(0)}, time.Hour, "name one at least 1m0s later"},
		"one a few seconds later, of a beacon":    {house, time.Hour, "name one at least 1m0s later"},
		"one before":                              {draw.External{Kind: draw.Drand, Round: round(-time.Minute)}, time.Hour, "could be known before"},
		"an opening before the usual one":         {draw.External{Kind: draw.Drand}, 5 * time.Minute, "opensAt is not before it"},
		"an opening before the one that is named": {draw.Quicknet(round(time.Hour)), time.Hour, "opensAt is not before it"},
		"quicknet, and another time of its first": {forged, 2 * time.Hour, "the first round of quicknet was at 1692803367"},
		"a committer, at once":                    {draw.External{Kind: draw.Committer, Name: "A Notary", Commitment: new(draw.Digest)}, 0, ""},
		"nothing, at once":                        {draw.External{}, 0, ""},
	} {
		err := drawn(c.e, c.opens).Check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
