package check

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAllowance tests that a check gets the same extra time as its waits on a busy machine, up to twice its limit.
func TestAllowance(t *testing.T) {
	const limit = 6 * time.Second
	for _, c := range []struct {
		name    string
		granted []time.Duration // each at the end of another second
		want    time.Duration
	}{
		{"an idle machine", nil, limit},
		{"a busy one", []time.Duration{time.Second, 2 * time.Second}, limit + 3*time.Second},
		{"one that is always busy", []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}, 2 * limit},
		{"too late", []time.Duration{0, 0, 0, 0, 0, 0, 0, time.Second}, limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, own, cancel := within(t.Context(), limit)
				defer cancel()
				check := &T{Context: ctx, execution: execution{allowance: own}}
				for _, granted := range c.granted {
					time.Sleep(time.Second) //nolint:forbidigo // in virtual time
					own.grow(granted)
				}
				if ctx.Err() == nil && check.left() != c.want-time.Since(began) {
					t.Errorf("%v are left after %v of %v", check.left(), time.Since(began), c.want)
				}
				<-ctx.Done()
				if took := time.Since(began); took != max(c.want, time.Duration(len(c.granted))*time.Second) || !errors.Is(context.Cause(ctx), errCheckTime) {
					t.Errorf("it ended after %v because of %v, want %v", took, context.Cause(ctx), c.want)
				}
			})
		})
	}
}
