package main

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A signal that follows at once, as when npx passes on what the terminal sent to
// all, does not cut off the reports; one that comes later does.
func TestAwaitAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, ended := make(chan os.Signal), make(chan struct{})
		go func() {
			awaitAnother(signals)
			close(ended)
		}()
		for range 3 {
			signals <- os.Interrupt
		}
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("the same interrupt was taken for another one")
		default:
		}
		time.Sleep(sameInterrupt)
		signals <- os.Interrupt
		<-ended
	})
}
