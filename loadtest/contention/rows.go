package contention

import (
	"math"
	"time"

	"seatcast/loadtest/report"
)

// Row is one strategy's figures in the file of --json. CPU and calls a refusal
// are null when nobody was refused, and what is of the storm at a fixed rate when
// there was none.
type Row struct {
	Strategy             string   `json:"strategy"`
	Requests             int      `json:"requests"`
	Held                 int      `json:"held"`
	Refused              int      `json:"refused"`
	SoldTwice            int      `json:"sold_twice"`
	CPUUsPerRefusal      *float64 `json:"cpu_us_per_refusal"`
	P50Ms                float64  `json:"p50_ms"`
	P99Ms                float64  `json:"p99_ms"`
	RedisCallsPerRefusal *float64 `json:"redis_calls_per_refusal"`
	FalseRefusals        int      `json:"false_refusals"`
	BystanderP99Ms       float64  `json:"bystander_p99_ms"`
	BystanderIdleP99Ms   float64  `json:"bystander_idle_p99_ms"`
	FixedRateP99Ms       *float64 `json:"bystander_fixed_rate_p99_ms"`
	FixedRateBusy        *float64 `json:"fixed_rate_busy"` // share of one core
	OldestFalseMs        float64  `json:"oldest_false_refusal_ms"`
}

// row makes a strategy's row of its rounds, of which there is one at least.
func row(strategy string, rounds []figures) Row {
	r := Row{Strategy: strategy,
		Requests: whole(rounds, func(f figures) int { return f.requests }), Held: whole(rounds, func(f figures) int { return f.held }),
		Refused:   whole(rounds, func(f figures) int { return f.refused }),
		SoldTwice: worst(rounds, func(f figures) int { return f.soldTwice }), FalseRefusals: worst(rounds, func(f figures) int { return f.falseRefusals }),
		P50Ms: middle(rounds, func(f figures) time.Duration { return f.p50 }), P99Ms: middle(rounds, p99),
		BystanderP99Ms: middle(rounds, beside), BystanderIdleP99Ms: middle(rounds, func(f figures) time.Duration { return f.idle }),
		OldestFalseMs: ms(worst(rounds, oldest)),
	}
	if r.Refused > 0 {
		cpu, calls := report.MedianOf(rounds, cpu), report.MedianOf(rounds, func(f figures) float64 { return f.calls })
		r.CPUUsPerRefusal, r.RedisCallsPerRefusal = &cpu, &calls
	}
	if open := middle(rounds, openP99); open > 0 {
		busy := report.MedianOf(rounds, func(f figures) float64 { return f.openBusy })
		r.FixedRateP99Ms, r.FixedRateBusy = &open, &busy
	}
	return r
}

func cpu(f figures) float64           { return f.cpu }
func p99(f figures) time.Duration     { return f.p99 }
func beside(f figures) time.Duration  { return f.beside }
func openP99(f figures) time.Duration { return f.open }
func oldest(f figures) time.Duration  { return f.oldest }

// times are milliseconds.
func times(rounds []figures, of func(figures) time.Duration) []float64 {
	return report.Each(rounds, func(f figures) float64 { return ms(of(f)) })
}

func middle(rounds []figures, of func(figures) time.Duration) float64 {
	return report.Median(times(rounds, of))
}

func whole(rounds []figures, of func(figures) int) int {
	return int(math.Round(report.MedianOf(rounds, func(f figures) float64 { return float64(of(f)) })))
}

func worst[N int | float64 | time.Duration](rounds []figures, of func(figures) N) (most N) {
	for _, f := range rounds {
		most = max(most, of(f))
	}
	return most
}

// write writes the rows to the file of --json, if there is one.
func (o *Options) write(got results) error {
	rows := make([]Row, 0, len(o.Strategies))
	for _, s := range o.Strategies {
		rows = append(rows, row(s, got[s]))
	}
	return report.Write(o.JSON, rows)
}
