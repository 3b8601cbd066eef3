package hub

// Parks reports whether Run is ready to park sessions.
func (h *Hub) Parks() bool { return h.parking.Load() != nil }

// Topics is how many topics the hub remembers.
func (h *Hub) Topics() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.rooms)
}
