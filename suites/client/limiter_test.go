package client

import (
	"context"
	"net/http"
	"net/http/httptest"
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
