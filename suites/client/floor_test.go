package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestVisitorsAreWaitedFor(t *testing.T) {
	v := &visitors{}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if !v.settle(over) {
		t.Error("nobody has come, and is waited for")
	}
	came, leave := make(chan struct{}), make(chan struct{})
	h := v.counting(func(next http.Handler) http.Handler { return next })(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(came)
		<-leave
	}))
	left := make(chan struct{})
	go func() {
		defer close(left)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/mcp", nil))
	}()
	<-came
	if v.settle(over) {
		t.Error("a visitor who is there has gone")
	}
	close(leave)
	if !v.settle(t.Context()) {
		t.Error("a visitor who has gone is there")
	}
	<-left
}
