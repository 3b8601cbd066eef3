package live

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"sync"

	"seatcast/seatmap"
)

// view is one event at one number, in the forms it is served in. Each is made
// at most once, by who asks first, and shared.
type view struct {
	state State
	chart string
	stale bool
	hot   bool
	event string

	snapshot, body, zipped sync.Once
	snapshotJSON           []byte
	bodyJSON               []byte
	bodyGzip               []byte
}

// page is the body of GET …/seatmap: the snapshot and how to go on from it.
type page struct {
	seatmap.Snapshot
	Mode        string  `json:"mode"`            // hot or ordinary
	Live        *string `json:"live"`            // where it is pushed; null when it is not
	PollAfterMs int     `json:"poll_after_ms"`   // how long to wait before asking again
	Stale       bool    `json:"stale,omitempty"` // the store does not answer: this is what was known last
}

// newView keeps s, which must not change any more.
func newView(s State, sale *seatmap.Sale, stale bool) *view {
	return &view{state: s, chart: sale.ChartSHA, stale: stale, hot: sale.Hot, event: sale.Event}
}

func (v *view) page() page {
	p := page{Snapshot: v.frame(), Mode: "ordinary", PollAfterMs: 30_000, Stale: v.stale}
	if v.hot {
		live := "/v1/events/" + v.event + "/live"
		p.Mode, p.Live, p.PollAfterMs = "hot", &live, 2_000
	}
	return p
}

func (v *view) frame() seatmap.Snapshot {
	return seatmap.Snapshot{N: v.state.N, Chart: v.chart, Map: v.state.Map, Areas: v.state.Areas}
}

// Snapshot is the JSON of the snapshot frame.
func (v *view) Snapshot() []byte {
	v.snapshot.Do(func() { v.snapshotJSON = encode(v.frame()) })
	return v.snapshotJSON
}

// Body is the JSON of the page.
func (v *view) Body() []byte {
	v.body.Do(func() { v.bodyJSON = encode(v.page()) })
	return v.bodyJSON
}

// Gzip is Body, compressed.
func (v *view) Gzip() []byte {
	v.zipped.Do(func() {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(v.Body()) // a Buffer takes everything
		_ = z.Close()
		v.bodyGzip = b.Bytes()
	})
	return v.bodyGzip
}

// tag is the ETag of one encoding of the view.
func (v *view) tag(encoding string) string {
	if v.stale {
		encoding = "stale-" + encoding
	}
	return `"` + strconv.FormatInt(v.state.N, 10) + "-" + v.chart[:min(12, len(v.chart))] + "-" + encoding + `"`
}
