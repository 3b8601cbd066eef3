package hub

import (
	"slices"
	"sort"
)

// ring keeps the newest frames of a topic. An offset counts the frames ever
// pushed; offsets in [tail, head) are kept. Each frame's prev is the number of
// the frame before it: whoever pushes clears the ring at a gap.
type ring struct {
	frames     []*frame
	tail, head uint64
}

func newRing(size int) ring { return ring{frames: make([]*frame, size)} }

func (r *ring) push(f *frame) {
	r.frames[r.head%uint64(len(r.frames))] = f
	r.head++
	if r.head-r.tail > uint64(len(r.frames)) {
		r.tail++
	}
}

func (r *ring) at(off uint64) *frame { return r.frames[off%uint64(len(r.frames))] }

func (r *ring) clear() {
	clear(r.frames)
	r.tail = r.head
}

// find returns the offset at which a watcher that has number n goes on, and
// whether n is a number this ring knows: one it merged, also in the middle of
// a frame, or the one just before its oldest frame.
func (r *ring) find(n int64) (off uint64, ok bool) {
	k := sort.Search(int(r.head-r.tail), func(i int) bool { return r.at(r.tail+uint64(i)).n >= n })
	off = r.tail + uint64(k)
	if off == r.head {
		return 0, false
	}
	f := r.at(off)
	if f.n == n {
		return off + 1, true
	}
	_, in := slices.BinarySearch(f.numbers, n)
	return off, in || f.prev == n
}
