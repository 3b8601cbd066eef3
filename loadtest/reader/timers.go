package reader

import (
	"container/heap"
	"time"
)

// timer connects a session at its time, unless it has lived on since.
type timer struct {
	at   time.Time
	conn int32
	gen  int32
}

// timers are ordered by time, soonest first.
type timers []timer

func (t *timers) push(one timer) { heap.Push((*timerHeap)(t), one) }
func (t *timers) pop() timer     { return heap.Pop((*timerHeap)(t)).(timer) }

type timerHeap []timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
