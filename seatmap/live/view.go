package live

import (
	"bytes"
	"compress/gzip"
	"hash/fnv"
	"strconv"
	"sync"

	"seatcast/seatmap"
)

// view is one event at one number, in the forms it is served in. Each is made
// at most once, by who asks first, and shared.
type view struct {
	state State
	sale  *seatmap.Sale
	stale bool

	Snapshot func() []byte // JSON of the snapshot frame
	Body     func() []byte // JSON of the page
	Gzip     func() []byte // Body, compressed
	Stale    func() *view  // the same, said to be what was known last
}

// page is the body of GET …/seatmap: the snapshot and how to go on from it.
type page struct {
	seatmap.Snapshot
	Mode        string  `json:"mode"`            // hot or ordinary
	Live        *string `json:"live"`            // where it is pushed; null when it is not
	PollAfterMs int     `json:"poll_after_ms"`   // how long to wait before asking again
	Stale       bool    `json:"stale,omitempty"` // the store does not answer: this is what was known last, or what is sold
}

// newView keeps s, which must not change any more.
func newView(s State, sale *seatmap.Sale, stale bool) *view {
	v := &view{state: s, sale: sale, stale: stale}
	v.Snapshot = sync.OnceValue(func() []byte { return encode(v.frame()) })
	v.Body = sync.OnceValue(func() []byte { return encode(v.page()) })
	v.Gzip = sync.OnceValue(func() []byte { return compress(v.Body()) })
	v.Stale = sync.OnceValue(func() *view { return newView(s, sale, true) })
	return v
}

func (v *view) frame() seatmap.Snapshot {
	return seatmap.Snapshot{N: v.state.N, Chart: v.sale.ChartSHA, Map: v.state.Map, Areas: v.state.Areas}
}

func (v *view) page() page {
	p := page{Snapshot: v.frame(), Mode: v.mode(), PollAfterMs: 30_000, Stale: v.stale}
	if v.sale.Hot {
		live := livePath(v.sale.Event)
		p.Live, p.PollAfterMs = &live, 2_000
	}
	return p
}

func (v *view) mode() string {
	if v.sale.Hot {
		return "hot"
	}
	return "ordinary"
}

// tag names what Body says: one map may be told in more ways than one.
func (v *view) tag() string {
	tag := strconv.FormatInt(v.state.N, 10) + "-" + v.sale.ChartSHA[:min(12, len(v.sale.ChartSHA))] + "-" + v.mode()
	if v.stale { // many are of one number
		h := fnv.New64a()
		_, _ = h.Write(v.Body())
		tag += "-stale-" + strconv.FormatUint(h.Sum64(), 36)
	}
	return tag
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a Buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
