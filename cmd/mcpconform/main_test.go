package main

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// A failure that was seen outweighs everything, and what could not be told outweighs success.
func TestWorst(t *testing.T) {
	order := []int{exitConformant, exitIncomplete, exitUsage, exitNotConformant}
	for i, a := range order {
		for j, b := range order {
			if got, want := worst(a, b), order[max(i, j)]; got != want {
				t.Errorf("of %d and %d, %d is taken for the worst", a, b, got)
			}
		}
	}
	for verdict, code := range map[result.Overall]int{result.Conformant: exitConformant, result.NotConformant: exitNotConformant, result.Incomplete: exitIncomplete} {
		if got := verdict.ExitCode(); got != code {
			t.Errorf("%s has the exit code %d, want %d", verdict, got, code)
		}
	}
}

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
