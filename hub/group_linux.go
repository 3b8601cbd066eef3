package hub

// group is a shard's part of who watches a room: one member of it, whatever
// their number.
type group struct {
	shard   *shard
	room    *room
	cursors []*cursor
	at      int // how far the walk under way has come

	// Guarded by shard.mu.
	queued  bool      // in shard.walks
	walking bool      // a walk is under way
	again   bool      // something came after it had begun
	coming  []*fanout // that the next walk ends
	now     []*fanout // that this one ends
}

// stride is how many sessions are walked before the shard looks at what else
// there is: about a millisecond's worth.
const stride = 128

// tell implements member.
func (g *group) tell(f *fanout) {
	sh := g.shard
	sh.mu.Lock()
	if f != nil {
		f.hold()
		g.coming = append(g.coming, f)
	}
	g.again = g.walking
	if !g.queued {
		g.queued = true
		sh.walks = append(sh.walks, g)
	}
	sh.mu.Unlock()
	sh.signal()
}

func (g *group) beginLocked() {
	if g.walking {
		return
	}
	g.walking, g.again = true, false
	g.now, g.coming = g.coming, g.now[:0]
	g.at = 0
}

// walk writes what is new to the next few sessions.
func (g *group) walk() {
	for range stride {
		if g.at >= len(g.cursors) {
			return
		}
		c := g.cursors[g.at]
		g.at++
		g.follow(c)
	}
}

// follow moves one cursor, and steps its session when that left more to do.
func (g *group) follow(c *cursor) {
	s := c.session
	if _, yes := s.out.stuck(); yes {
		return // it goes on when its connection does
	}
	err := s.advance(c)
	if err == nil && c.wait == nil {
		if _, yes := s.out.stuck(); !yes {
			return
		}
	}
	b, _ := s.driver.(*berth)
	if err != nil {
		g.shard.end(b, codeOf(err))
		return
	}
	g.shard.step(b)
}

// restLocked ends a walk that has come to the last, and reports whether there
// is more to walk.
func (g *group) restLocked() (more bool) {
	if g.at < len(g.cursors) {
		return true
	}
	for _, f := range g.now {
		f.release()
	}
	clear(g.now)
	g.walking = false
	g.queued = g.again || len(g.coming) > 0
	return g.queued
}

func (g *group) add(c *cursor) {
	c.slot = int32(len(g.cursors))
	g.cursors = append(g.cursors, c)
}

// remove keeps who has been walked before who has not.
func (g *group) remove(c *cursor) {
	hole, last := int(c.slot), len(g.cursors)-1
	if hole < g.at {
		g.at--
		hole = g.fill(hole, g.at)
	}
	g.fill(hole, last)
	g.cursors[last] = nil
	g.cursors = g.cursors[:last]
}

// fill moves a cursor into a hole, and returns the hole it leaves.
func (g *group) fill(hole, from int) int {
	if hole != from {
		g.cursors[hole] = g.cursors[from]
		g.cursors[hole].slot = int32(hole)
	}
	return from
}
