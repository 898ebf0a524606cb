package client

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// floor decides when clients may be launched. Few of them do something at a
// time, so that none starves; those that merely wait make room for others, so
// that clients which hang cost their time limit together, not one by one.
type floor struct {
	working chan struct{} // holds one entry for each client that does something
	present chan struct{} // and one for each that is there
	hanging chan struct{} // closed when the baseline was found to hang

	mu   sync.Mutex
	at   time.Time // when that was
	mute bool      // the client had not said a word by then
	base time.Duration
}

// A client counts as one that hangs when it takes this many times as long as
// with an ordinary server: the machine may be busy, or the client slow.
const slowness = 4

// presence is how many clients may be there for each that may do something.
const presence = 16

func newFloor(parallel int) *floor {
	if parallel <= 0 {
		parallel = 2 * runtime.GOMAXPROCS(0)
	}
	return &floor{
		working: make(chan struct{}, parallel), present: make(chan struct{}, presence*parallel), hanging: make(chan struct{}),
	}
}

// enter waits until a client may be launched, or says why it is not to be.
func (f *floor) enter(ctx context.Context, s *Scenario) (v *visit, why string) {
	v = &visit{floor: f}
	if s.Name != Baseline && !s.Patient {
		select {
		case f.working <- struct{}{}:
			v.works = true
		case <-f.hanging:
		case <-ctx.Done():
		}
		select {
		case f.present <- struct{}{}:
			v.there = true
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	mute := f.mute
	f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		why = cutShort(ctx)
	case mute:
		why = "the client was not launched any more: with an ordinary server it said nothing until its time limit"
	default:
		return v, ""
	}
	v.leave()
	return nil, why
}

// hangs notes that the client does not end by itself with an ordinary server.
func (f *floor) hangs(spoke bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.mute = time.Now(), !spoke
	close(f.hanging)
}

// took notes how long the client takes with an ordinary server.
func (f *floor) took(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = d
}

// usual returns how long the client may take at least.
func (f *floor) usual() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slowness * f.base
}

// hung reports whether that was noted.
func (f *floor) hung() bool {
	select {
	case <-f.hanging:
		return true
	default:
		return false
	}
}

// since returns the later of a time and that at which the baseline hung.
func (f *floor) since(t time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.After(t) {
		return f.at
	}
	return t
}

// visit is one client on the floor.
type visit struct {
	floor        *floor
	works, there bool
}

// rest makes room for a client that does something.
func (v *visit) rest() {
	if v.works {
		<-v.floor.working
		v.works = false
	}
}

// leave makes room altogether.
func (v *visit) leave() {
	v.rest()
	if v.there {
		<-v.floor.present
		v.there = false
	}
}

// visitors counts the requests that a server is answering. A client that was
// launched by a shell or goes on in the background is there until they end,
// whatever has become of the process that was launched.
type visitors struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when there are none; nil if there never were any
}

func (v *visitors) counting(more func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if more != nil {
			next = more(next)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v.mu.Lock()
			if v.count++; v.count == 1 {
				v.none = make(chan struct{})
			}
			v.mu.Unlock()
			defer func() {
				v.mu.Lock()
				defer v.mu.Unlock()
				if v.count--; v.count == 0 {
					close(v.none)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// settle waits until there are no visitors, and reports whether they have gone.
func (v *visitors) settle(ctx context.Context) bool {
	v.mu.Lock()
	none := v.none
	v.mu.Unlock()
	if none == nil {
		return true
	}
	select {
	case <-none:
		return true
	case <-ctx.Done():
		return false
	}
}
