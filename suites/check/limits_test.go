package check

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// TestLimits sends many requests to a server that takes a few in a second. Few of them are refused, and they take little
// longer than the server needs.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, all = 5, 60
		l := limits{turn: make(chan struct{}, 1)}
		tooMany := &wire.Event{Kind: wire.KindHTTPResponse, HTTP: &wire.Head{Status: http.StatusTooManyRequests}}
		var mu sync.Mutex
		var second int64
		var taken, refused int
		send := func() (ok bool) {
			l.Admit(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now().Unix(); now != second {
				second, taken = now, 0
			}
			if taken++; taken > most {
				refused++
				l.Refused(tooMany)
				return false
			}
			return true
		}
		began := time.Now()
		var sending sync.WaitGroup
		for range all {
			sending.Go(func() {
				for !send() {
				}
			})
			synctest.Wait()
		}
		sending.Wait()
		if refused > all/most {
			t.Errorf("%d requests were refused", refused)
		}
		if took := time.Since(began); took > 2*all/most*time.Second {
			t.Errorf("they took %v", took)
		}
	})
}
