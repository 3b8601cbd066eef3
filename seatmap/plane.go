package seatmap

import (
	"encoding/binary"
	"math/bits"
)

// plane is a set of positions, one bit each. Every plane of a Seating has the
// same number of words, and no bit beyond the last position is set.
type plane []uint64

func newPlane(n int) plane { return make(plane, (n+63)/64) }

func (p plane) has(i int) bool { return p[i>>6]>>(i&63)&1 != 0 }
func (p plane) set(i int)      { p[i>>6] |= 1 << (i & 63) }
func (p plane) unset(i int)    { p[i>>6] &^= 1 << (i & 63) }

// word returns the 64 bits from position i on; beyond the end they are 0.
func (p plane) word(i int) uint64 {
	w, off := i>>6, i&63
	if w >= len(p) {
		return 0
	}
	v := p[w] >> off
	if off > 0 && w+1 < len(p) {
		v |= p[w+1] << (64 - off)
	}
	return v
}

// fill sets the positions from from to before to.
func (p plane) fill(from, to int) {
	for i := from; i < to; {
		n := min(64-i&63, to-i)
		p[i>>6] |= ^uint64(0) >> (64 - n) << (i & 63)
		i += n
	}
}

// copyFrom sets those of the n positions from to on that are set in q from
// from on.
func (p plane) copyFrom(q plane, to, from, n int) {
	for n > 0 {
		take := min(64-to&63, n)
		p[to>>6] |= q.word(from) & (^uint64(0) >> (64 - take)) << (to & 63)
		to, from, n = to+take, from+take, n-take
	}
}

// next returns the first position of the plane in [from, to), or to.
func (p plane) next(from, to int) int {
	for w := from >> 6; from < to; w++ {
		if v := p[w] >> (from & 63); v != 0 {
			return min(from+bits.TrailingZeros64(v), to)
		}
		from = (w + 1) << 6
	}
	return to
}

// gap returns the first position in [from, to) that is not in the plane, or to.
func (p plane) gap(from, to int) int {
	for w := from >> 6; from < to; w++ {
		if v := ^p[w] >> (from & 63); v != 0 {
			return min(from+bits.TrailingZeros64(v), to)
		}
		from = (w + 1) << 6
	}
	return to
}

func (p plane) count() (n int) {
	for _, v := range p {
		n += bits.OnesCount64(v)
	}
	return n
}

// and writes into p what is in both a and b.
func (p plane) and(a, b plane) {
	for i := range p {
		p[i] = a[i] & b[i]
	}
}

// less writes into p what is in a and not in b.
func (p plane) less(a, b plane) {
	for i := range p {
		p[i] = a[i] &^ b[i]
	}
}

// available writes into p, by index, which seats of the map are available. A
// seat outside the map is not.
func (p plane) available(m Map) {
	for i := range p {
		var b [16]byte
		if from := 16 * i; from+16 <= len(m) {
			b = [16]byte(m[from:])
		} else {
			for k := range b {
				b[k] = 0xff
			}
			if from < len(m) {
				copy(b[:], m[from:])
			}
		}
		p[i] = zeroPairs(binary.LittleEndian.Uint64(b[:8])) | zeroPairs(binary.LittleEndian.Uint64(b[8:]))<<32
	}
}

// zeroPairs returns a bit for each of the 32 pairs of bits of v: is it 00?
func zeroPairs(v uint64) uint64 {
	v = ^(v | v>>1) & 0x5555555555555555
	v = (v | v>>1) & 0x3333333333333333
	v = (v | v>>2) & 0x0f0f0f0f0f0f0f0f
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0x00000000ffffffff
}
