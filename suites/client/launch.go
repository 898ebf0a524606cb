package client

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

const (
	stopWait  = 2 * time.Second  // for a client that was asked to end
	leaveWait = 10 * time.Second // for server processes that a client has left behind
	quietTime = time.Second      // without any event, a client counts as waiting
	busyTime  = 3 * time.Second  // before the time limit: a client that did something then was not hanging
	maxOutput = 8 << 10          // bytes of the client's output that are kept
)

// FolderPlaceholder stands in UserActions for the path of the scenario's empty folder.
const FolderPlaceholder = "{folder}"

// runScenario launches the client against one server and waits for its end, unless another scenario has shown that this
// one shows nothing. It takes the place of a waiter, unless that is nil.
func (x *execution) runScenario(ctx context.Context, t *T, w *waiter) error {
	var slot *slot
	why := x.excused(ctx, t.Scenario)
	if why == "" {
		if first := x.first(t.Scenario); first != nil {
			t.Preceding = first.t
		}
		slot, why = x.launches.acquire(ctx, t.Scenario, w)
	}
	if why != "" {
		t.Ending.Skipped, t.Ending.NotRun = why, ctx.Err() != nil
		return nil
	}
	defer slot.release()
	dir, remove, err := prepare(t)
	defer remove()
	if err != nil {
		return err
	}
	server, endpoint, err := x.open(ctx, t, dir)
	if err != nil {
		return err
	}
	process, err := x.Launch(endpoint)
	if err != nil {
		server.shut(ctx)
		return err
	}
	t.Ending = x.await(ctx, process, t, slot, server)
	if server.failed != nil {
		err = server.failed()
	}
	t.beside = x.launches.beside(slot)
	return err
}

// prepare makes a folder for a launch. The caller removes it, also after an error.
func prepare(t *T) (dir string, remove func(), err error) {
	if dir, remove, err = transport.TempDir(); err != nil {
		return "", func() {}, fmt.Errorf("make a folder for the client: %w", err)
	}
	if strings.Contains(t.Scenario.UserActions, FolderPlaceholder) {
		if t.Folder, err = os.MkdirTemp(dir, "root-é%41-"); err != nil {
			return dir, remove, fmt.Errorf("make a folder for the client: %w", err)
		}
	}
	return dir, remove, nil
}

// await waits until the client ends, and stops one that does not.
func (x *execution) await(ctx context.Context, p transport.Process, t *T, s *slot, server scenarioServer) Ending {
	_ = p.Stdin().Close()
	output := &tail{}
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(output, p.Stdout()) })
	readers.Go(func() { _, _ = io.Copy(output, p.Stderr()) })
	end := x.watch(ctx, p, t, s)
	if end.Late || end.Skipped != "" {
		server.leave()
		_ = p.Terminate()
		select {
		case <-p.Done():
		case <-time.After(stopWait):
			p.Kill()
			<-p.Done()
		}
	} else {
		exit := p.Exit()
		end.Exit = &exit
	}
	// Processes that the client has left behind, such as a server, may end by themselves.
	leaving, cancel := context.WithTimeout(ctx, leaveWait)
	if end.Exit != nil && !server.settle(leaving) {
		end = Ending{Late: true, Busy: true}
	}
	server.shut(leaving)
	cancel()
	p.Kill() // whatever it has left behind
	_ = p.Stdout().Close()
	_ = p.Stderr().Close()
	readers.Wait()
	end.Output = output.String()
	return end
}

// fresh returns the run of a scenario that follows on another.
func (e *Engine) fresh(t *T) *T {
	again := e.newRun(t.Scenario)
	again.others = t.others
	again.after, again.whole, again.combined = len(e.Trace.Logs()), t.Ending.Silent, t.combined
	if t.spoke {
		again.before = t
	}
	return again
}

// launchedAgain launches the client for a run that follows on another, and reports whether it could be launched.
func (x *execution) launchedAgain(ctx context.Context, again *T) bool {
	if err := x.runScenario(ctx, again, nil); err != nil || again.Ending.Skipped != "" {
		return false
	}
	again.gather(x.Trace)
	return true
}

// secondBaseline returns a function that launches the client once more with the ordinary server, at its first call.
// The function returns that run, or nil if the client could not be launched.
func (x *execution) secondBaseline(ctx context.Context) func() *T {
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	var second *T
	return func() *T {
		select {
		case begun <- struct{}{}:
			if t := x.fresh(x.awaited[Baseline].t); x.launchedAgain(ctx, t) {
				second = t
			}
			close(ended)
		case <-ended:
		}
		return second
	}
}

// smaller returns the run of a scenario with the smallest part of its stimuli that shows what the run has found. That
// the client hangs is known.
func (x *execution) smaller(ctx context.Context, t *T) *T {
	if t.Scenario.Smaller == nil {
		return t
	}
	return t.Scenario.Smaller(t, func(limit func(*T)) *T {
		again := x.fresh(t)
		again.whole = false
		limit(again)
		if !x.launchedAgain(ctx, again) {
			return nil
		}
		x.judge(again)
		return again
	})
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxOutput; over > maxOutput {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxOutput):])
}
