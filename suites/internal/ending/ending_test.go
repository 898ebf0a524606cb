package ending

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// Each limit of time that a user can set names its flag, and no other does.
func TestLonger(t *testing.T) {
	other := errors.New("the connection was reset")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "<nil>"},
		{other, other.Error()},
		{&client.TimeoutError{Awaited: "answer to ping", After: time.Second}, "no answer to ping within 1s; if it may take longer, raise --timeout"},
		{&client.TimeoutError{Awaited: "answer to initialize", After: time.Minute, Start: true}, "no answer to initialize within 1m0s; if it may take longer, raise --start-timeout"},
		{&client.TimeoutError{Awaited: "answer to ping", After: time.Second, Slowest: time.Millisecond}, "no answer to ping within 1s, although the slowest one before took 1ms"},
		{fmt.Errorf("GET: %w", &transport.TimeoutError{Missed: "no endpoint event came", After: time.Second}), "GET: no endpoint event came within 1s; if it may take longer, raise --timeout"},
		{
			&transport.StartError{Target: "s", Process: true, Err: &transport.TimeoutError{Missed: "it did not accept connections", After: time.Second, Start: true}},
			"cannot start s: it did not accept connections within 1s; if it may take longer, raise --start-timeout",
		},
		{&TimeError{Limit: time.Second}, "the run took longer than its time limit of 1s; if it may take longer, raise --run-timeout"},
	} {
		got := Longer(c.err)
		if fmt.Sprint(got) != c.want || fmt.Sprint(Longer(got)) != c.want {
			t.Errorf("%v becomes %q, and then %q; want %q", c.err, fmt.Sprint(got), fmt.Sprint(Longer(got)), c.want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v is lost", c.err)
		}
	}
}
