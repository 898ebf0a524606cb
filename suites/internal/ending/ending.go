// Package ending says why a run ended before all was tried.
package ending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// ErrInterrupted is why a run ended early that somebody interrupted.
var ErrInterrupted = errors.New("the run was interrupted")

// TimeError is why a run ended early that took too long.
type TimeError struct{ Limit time.Duration }

func (e *TimeError) Error() string {
	return fmt.Sprintf("the run took longer than its time limit of %v; ", e.Limit) + Raise(runTimeout)
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

// The flags that set the limits of time.
const (
	Timeout      = "--timeout"
	startTimeout = "--start-timeout"
	runTimeout   = "--run-timeout"
)

// Raise advises, in a clause, to raise the flag of a time limit that was too short.
func Raise(flag string) string { return "if it may take longer, raise " + flag }

// Longer names the flag of the time limit in an error about that limit. It returns any other error as it is, also an
// error about a limit without a flag.
func Longer(err error) error {
	var answer *client.TimeoutError
	var connecting *transport.TimeoutError
	start := false
	switch {
	case errors.As(err, &answer):
		if answer.Learned() {
			return err
		}
		start = answer.Start
	case errors.As(err, &connecting):
		start = connecting.Start
	default:
		return err
	}
	if start {
		return Advise(err, Raise(startTimeout))
	}
	return Advise(err, Raise(Timeout))
}

// advised is an error with what to do about it.
type advised struct {
	error
	advice string
}

func (e *advised) Error() string { return e.error.Error() + "; " + e.advice }

// Unwrap returns the error without the advice.
func (e *advised) Unwrap() error { return e.error }

// Advise adds to an error what to do about it, in a clause. An error that says so
// already stays as it is.
func Advise(err error, advice string) error {
	if known := (*advised)(nil); errors.As(err, &known) {
		return err
	}
	return &advised{err, advice}
}
