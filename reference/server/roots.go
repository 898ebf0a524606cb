package server

import "context"

// Roots asks the client for its roots in the course of the request. From then
// on the server fetches them again whenever the client says that they changed
// (client/roots#root-list-changes).
func (r *Request) Roots(ctx context.Context) (any, error) {
	roots, err := r.Call(ctx, "roots/list", nil)
	if err == nil {
		r.Session.mu.Lock()
		r.Session.rootsFetched = true
		r.Session.mu.Unlock()
	}
	return roots, err
}

func (s *Session) rootsChanged() {
	s.mu.Lock()
	busy := s.rootsBusy
	s.rootsStale = s.rootsFetched
	s.rootsBusy = busy || s.rootsStale
	start := s.rootsStale && !busy
	s.mu.Unlock()
	if start {
		s.spawn(s.refetchRoots)
	}
}

// refetchRoots asks for the roots until no change came in the meantime, so that a
// flood of notifications does not cause a flood of requests.
func (s *Session) refetchRoots() {
	for {
		s.mu.Lock()
		if !s.rootsStale || s.closed {
			s.rootsBusy = false
			s.mu.Unlock()
			return
		}
		s.rootsStale = false
		s.mu.Unlock()
		// The reference server does not use the list, so that it ignores an error of
		// the client here.
		_, _ = s.Call(s.ctx, "roots/list", nil)
	}
}
