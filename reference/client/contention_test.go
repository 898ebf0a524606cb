package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// contended is a connection to a peer that waits for a processor for a share of the time, in
// turns: for so long it waits, and then it does not.
type contended struct {
	transport.Conn
	began time.Time
	share float64
	turn  time.Duration
	busy  bool
}

func (c contended) Contention() (time.Duration, bool) {
	waited := time.Since(c.began)
	whole := waited.Truncate(c.turn)
	return time.Duration(float64(whole)*c.share) + min(waited-whole, time.Duration(float64(c.turn)*c.share)), c.busy
}

// The time for which a peer waits for a processor does not count, up to a bound.
func TestContention(t *testing.T) {
	const limit = 10 * time.Second
	for _, c := range []struct {
		name        string
		answerAfter time.Duration // zero: never
		share       float64
		turn        time.Duration
		idle        bool
		want        time.Duration // until the answer or the end of the wait
	}{
		{"a slow answer on a busy machine", 3 * limit, 0.9, 1, false, 3 * limit},
		{"a slow answer on a machine that is busy in turns", 3 * limit, 0.7, 3 * time.Second, false, 3 * limit},
		{"no answer of one that has a processor", 0, 0.01, 1, false, limit + 250*time.Millisecond},
		{"no answer on a busy machine", 0, 0.9, 1, false, 5 * limit},
		{"no answer on an idle machine", 0, 0.9, 1, true, limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wrap := func(conn transport.Conn) transport.Conn { return contended{conn, began, c.share, c.turn, !c.idle} }
				s := dialThrough(t, wrap, client.Options{Timeout: limit}, func(p *peer) {
					if p.next(); c.answerAfter > 0 {
						time.Sleep(c.answerAfter) //nolint:forbidigo // in virtual time
						p.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
					}
					p.rest()
				})
				var granted time.Duration
				_, err := s.Call(client.WithGrants(t.Context(), func(d time.Duration) { granted += d }), "ping", nil)
				if took := time.Since(began); took != c.want {
					t.Errorf("the wait took %v, want %v", took, c.want)
				}
				if c.answerAfter == 0 && granted != c.want-limit {
					t.Errorf("%v were granted", granted)
				}
				var late *client.TimeoutError
				if answered := c.answerAfter > 0; answered != (err == nil) || !answered && (!errors.As(err, &late) || late.After != c.want) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}
