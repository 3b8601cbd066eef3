package contention

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options say what is measured.
type Options struct {
	Strategies []string // as rows, in this order
	Buyers     int
	Hot        int // seats all of them want
	Seats      int
	Seconds    float64 // a storm
	Pairs      int
	Hold       time.Duration
	Bystander  float64 // quiet seats a second
	Rate       float64 // requests a second of the storm, at fixed moments; 0: a closed loop

	Pool        int    // connections of a front to Postgres
	Transaction string // of the strategy postgres
	RoundTrips  int
	Durable     bool // Postgres confirms only what is on disk

	JSON    string // file for the rows
	Plot    string // file for a picture
	Program string // seatcast's binary; built when empty
	Self    string // this program
	Out     io.Writer
	Err     io.Writer
}

// Strategies.
const (
	Naive    = "naive"
	Postgres = "postgres"
	Redis    = "redis"
	Seatcast = "seatcast"
	Bare     = "bare"
)

var strategies = []string{Naive, Postgres, Redis, Seatcast, Bare}

// Bounds of what one machine can do.
const (
	mostBuyers = 5000
	mostSeats  = 60_000
	mostPool   = 150 // Postgres is started with 200
)

// Validate returns what is wrong with the options, and says what to use.
func (o *Options) Validate() error {
	if err := o.checkStrategies(); err != nil {
		return err
	}
	switch {
	case o.Buyers < 1 || o.Buyers > mostBuyers:
		return fmt.Errorf("--buyers %d: use 1 to %d", o.Buyers, mostBuyers)
	case o.Seats < 2 || o.Seats > mostSeats:
		return fmt.Errorf("--seats %d: use 2 to %d", o.Seats, mostSeats)
	case o.Hot < 1 || o.Hot >= o.Seats:
		return fmt.Errorf("--hot %d: use 1 to %d, so that a bystander has quiet seats", o.Hot, o.Seats-1)
	case !(o.Seconds > 0) || o.Seconds > 3600:
		return fmt.Errorf("--seconds %v: more than 0 and at most 3600", o.Seconds)
	case o.Pairs < 1:
		return fmt.Errorf("--pairs %d: at least one is needed", o.Pairs)
	case o.Hold < 100*time.Millisecond || o.Hold > time.Hour:
		return fmt.Errorf("--hold %v: use 100ms to 1h", o.Hold)
	case !(o.Rate >= 0) || o.Rate > 1e6:
		return fmt.Errorf("--rate %v: at least 0, and at most a million", o.Rate)
	}
	if err := o.checkBystander(); err != nil {
		return err
	}
	return o.checkPostgres()
}

func (o *Options) checkStrategies() error {
	if len(o.Strategies) == 0 {
		return fmt.Errorf("--strategy: name some of %s", strings.Join(strategies, ", "))
	}
	for i, s := range o.Strategies {
		if !slices.Contains(strategies, s) {
			return fmt.Errorf("--strategy: there is no %q: there are %s", s, strings.Join(strategies, ", "))
		}
		if slices.Contains(o.Strategies[:i], s) {
			return fmt.Errorf("--strategy: %s is named twice", s)
		}
	}
	return nil
}

// checkBystander wants every quiet seat free again when its turn comes.
func (o *Options) checkBystander() error {
	most := float64(o.Seats-o.Hot) / (2 * o.Hold.Seconds())
	if !(o.Bystander > 0) || o.Bystander > most {
		return fmt.Errorf("--bystander %v: more than 0 and at most %.0f a second, so that a quiet seat is free again when its turn comes", o.Bystander, most)
	}
	return nil
}

func (o *Options) checkPostgres() error {
	switch {
	case o.Pool < 1 || o.Pool > mostPool:
		return fmt.Errorf("--pool %d: use 1 to %d", o.Pool, mostPool)
	case !slices.Contains([]string{"simple", "realistic", "locked"}, o.Transaction):
		return fmt.Errorf("--transaction %q: use simple, realistic or locked", o.Transaction)
	case o.RoundTrips < 0 || o.RoundTrips > 100:
		return fmt.Errorf("--round-trips %d: use 0 to 100", o.RoundTrips)
	case o.RoundTrips > 0 && o.Transaction == "simple":
		return errors.New("--round-trips are those of a transaction: use --transaction realistic or locked")
	}
	return nil
}

// measured are the strategies that are run: those asked for, and the yardstick
// of seatcast.
func (o *Options) measured() []string {
	if slices.Contains(o.Strategies, Bare) || !slices.Contains(o.Strategies, Seatcast) {
		return o.Strategies
	}
	return append(slices.Clone(o.Strategies), Bare)
}

func (o *Options) has(strategy string) bool { return slices.Contains(o.measured(), strategy) }

func (o *Options) storm() time.Duration { return time.Duration(o.Seconds * float64(time.Second)) }

// idle is how long the bystander is alone, and how long a storm at a fixed
// rate lasts.
func (o *Options) idle() time.Duration { return max(o.storm()/2, time.Second) }

// warm is how long anything runs before it is measured: until holds end and
// rows change hands.
func (o *Options) warm() time.Duration { return o.Hold + 500*time.Millisecond }
