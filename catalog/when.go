package catalog

import (
	"fmt"
	"time"
	_ "time/tzdata" // a zone must mean the same on a machine without a zone database
)

const wallClock = "2006-01-02T15:04"

// loadZone returns the location of an IANA name. The empty name and "Local",
// which Go would take for UTC and for this machine's zone, are no names.
func loadZone(zone string) (*time.Location, error) {
	if zone == "" || zone == "Local" {
		return nil, fmt.Errorf("%q is no IANA time zone, such as Europe/Paris", zone)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%q is no IANA time zone, such as Europe/Paris", zone)
	}
	return loc, nil
}

// CheckZone says why a name is no IANA time zone.
func CheckZone(zone string) error {
	_, err := loadZone(zone)
	return err
}

// ParseWhen reads a time: RFC 3339, or the venue's wall clock as
// 2027-06-01T20:00. A wall clock that the zone shows twice or skips, when its
// clocks change, is an error that tells what to write instead.
func ParseWhen(text, zone string) (time.Time, error) {
	loc, err := loadZone(zone)
	if err != nil {
		return time.Time{}, err
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(loc), nil
	}
	wall, err := time.Parse(wallClock, text)
	if err != nil {
		if wall, err = time.Parse(wallClock+":05", text); err != nil {
			return time.Time{}, fmt.Errorf("%q is no time: write 2027-06-01T20:00 in %s, or 2027-06-01T20:00:00+02:00", text, zone)
		}
	}
	switch at := instants(wall, loc); len(at) {
	case 1:
		return at[0], nil
	case 0:
		return time.Time{}, fmt.Errorf("%s does not exist in %s: its clocks go forward over it; write a time before or after the change", text, zone)
	default:
		return time.Time{}, fmt.Errorf("%s comes twice in %s, where clocks go back: write %s or %s",
			text, zone, at[0].Format(time.RFC3339), at[1].Format(time.RFC3339))
	}
}

// instants returns every moment at which a clock in loc shows wall, which is
// given in UTC. Offsets in force a day before and a day after are all that can
// be in force at it.
func instants(wall time.Time, loc *time.Location) []time.Time {
	var found []time.Time
	last := 0
	for n, day := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(day).In(loc).Zone()
		if n > 0 && offset == last {
			break
		}
		last = offset
		at := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if at.Format(wallClock) == wall.Format(wallClock) {
			found = append(found, at)
		}
	}
	return found
}
