package checkout

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	refundsBy = prometheus.NewDesc("checkout_refunds",
		"Refunds of sold tickets, by state; absent while Postgres does not answer. The same on every worker.", []string{"state"}, nil)
	refundsOldest = prometheus.NewDesc("checkout_refund_oldest_pending_seconds",
		"How long ago the oldest refund was begun that is pending; 0: none is. Likewise.", nil, nil)
)

// scrapeWithin is how long whoever asks for metrics waits for Postgres.
const scrapeWithin = time.Second

func (d *Desk) collectRefunds(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	var pending, succeeded, failed, oldest float64
	err := d.store.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
			coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE state = 'pending')), 0)::float8 FROM refunds`).
		Scan(&pending, &succeeded, &failed, &oldest)
	if err != nil {
		d.log.WarnContext(ctx, "refunds are not counted", "err", err)
		return
	}
	for state, n := range map[RefundState]float64{RefundPending: pending, RefundSucceeded: succeeded, RefundFailed: failed} {
		to <- prometheus.MustNewConstMetric(refundsBy, prometheus.GaugeValue, n, string(state))
	}
	to <- prometheus.MustNewConstMetric(refundsOldest, prometheus.GaugeValue, oldest)
}
