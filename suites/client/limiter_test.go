package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestRequestsInFlightAreWaitedFor(t *testing.T) {
	f := &inFlight{}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if !f.settle(over) {
		t.Error("settle waits although no request has come")
	}
	came, leave := make(chan struct{}), make(chan struct{})
	h := f.counting(func(next http.Handler) http.Handler { return next })(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(came)
		<-leave
	}))
	left := make(chan struct{})
	go func() {
		defer close(left)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/mcp", nil))
	}()
	<-came
	if f.settle(over) {
		t.Error("a request that is in flight counts as ended")
	}
	close(leave)
	if !f.settle(t.Context()) {
		t.Error("a request that has ended counts as in flight")
	}
	<-left
}

// TestLaunchesInTurn: clients are launched in the order in which they wait, also if one gives
// up or comes before all others.
func TestLaunchesInTurn(t *testing.T) {
	l := newLaunchLimiter(1)
	early := l.wait(false)
	select {
	case <-early.ready:
		t.Fatal("a client works before one was heard")
	default:
	}
	l.queue.leave(early)
	l.open()
	l.open()
	works, second, third := l.wait(false), l.wait(false), l.wait(false)
	first := l.wait(true)
	turn := func(w *waiter) bool {
		select {
		case <-w.ready:
			return true
		default:
			return false
		}
	}
	if !turn(works) || turn(first) || turn(second) {
		t.Fatal("another number of clients than one may work")
	}
	l.queue.leave(second)
	l.queue.leave(works)
	if !turn(first) || turn(third) {
		t.Error("the one before all others is not the next")
	}
	l.queue.leave(first)
	if !turn(third) {
		t.Error("nobody is next after one that gave up")
	}
}

// TestBegunFirst: what keeps clients waiting, and what others wait for, is begun before
// the rest.
func TestBegunFirst(t *testing.T) {
	waiting := &Scenario{Name: "waiting", Lane: Waiting}
	plain, alone, follows := &Scenario{Name: "plain"}, &Scenario{Name: "alone"}, &Scenario{Name: "follows", After: []string{"leads"}}
	combined := &combinedRun{t: &T{Scenario: &Scenario{Name: "together"}}}
	var order []string
	for _, u := range units([]*Scenario{{Name: Baseline}, alone, plain, waiting, follows, {Name: "leads"}}, map[int]*combinedRun{2: combined}) {
		order = append(order, u.scenario().Name)
	}
	if want := []string{Baseline, "waiting", "together", "plain", "leads", "alone", "follows"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}
