// Package ending says why a run ended before all was tried.
package ending

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrInterrupted is why a run ended early that somebody interrupted.
var ErrInterrupted = errors.New("the run was interrupted")

// TimeError is why a run ended early that took too long.
type TimeError struct{ Limit time.Duration }

func (e *TimeError) Error() string {
	return fmt.Sprintf("the run took longer than its time limit of %v; --run-timeout sets a longer one", e.Limit)
}

// Is makes the end by the limit an interruption, for whoever meets it as the cause of a
// context: the target is not to blame for what did not happen then.
func (e *TimeError) Is(target error) bool {
	return target == ErrInterrupted || target == context.Canceled
}

// Cause returns why a run was ended early whose context has ended, else nil.
func Cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if late := (*TimeError)(nil); errors.As(context.Cause(ctx), &late) {
		return late
	}
	return ErrInterrupted
}

// After ends a run once a time has passed: end is called with the cause. The function
// that After returns stops the clock.
func After(d, limit time.Duration, end context.CancelCauseFunc) (stop func()) {
	clock := time.AfterFunc(d, func() { end(&TimeError{limit}) })
	return func() { clock.Stop() }
}
