package catalog

import "time"

// Age makes every answer about an event one that is to be asked for anew.
func (s *Store) Age() {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	for id, a := range s.events.answers {
		s.events.answers[id] = answer[*known]{value: a.value, until: time.Now()}
	}
}
