package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// TestHelperServer is no test: it is the server that the tests of Start run.
func TestHelperServer(t *testing.T) {
	mode, addr, _ := strings.Cut(os.Getenv("TEST_START"), " ")
	switch mode {
	case "":
		t.Skip("runs as the server of other tests")
	case "serve", "stubborn":
		if mode == "stubborn" {
			signal.Ignore(syscall.SIGTERM)
		}
		fmt.Fprintln(os.Stderr, "about to listen")
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	case "fail":
		fmt.Fprintln(os.Stderr, "no configuration: token hunter22")
		os.Exit(3)
	case "idle":
		fmt.Println("thinking")
		select {}
	}
}

func helper(mode, url string) Start {
	// The port is known only to the arguments, so that the shell hands it on.
	return Start{
		Command: Command{
			Args: Shell(`TEST_START="` + mode + ` 127.0.0.1:{port}" exec "` + os.Args[0] + `" -test.run='^TestHelperServer$'`),
		},
		Endpoint: Endpoint{URL: url},
	}
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
}

func TestStart(t *testing.T) {
	needShell(t)
	noLeaks(t)
	s := helper("serve", "http://127.0.0.1:{port}/mcp")
	s.Log = newTestLog()
	server, err := s.Run(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(server.Endpoint.URL, "{") {
		t.Errorf("URL %s", server.Endpoint.URL)
	}
	send(t, dialHTTP(t, at(server.Endpoint.URL), newTestLog()), initializedRaw)

	// A second server must not be mistaken for the first.
	again := helper("serve", server.Endpoint.URL)
	if _, err := again.Run(limit(t)); err == nil || !strings.Contains(err.Error(), "already accepts connections") {
		t.Errorf("second server: %v", err)
	}

	server.Stop(limit(t))
	if got := server.Exit().Signal; got != "terminated" {
		t.Errorf("exit %+v", server.Exit())
	}
	if !strings.Contains(string(server.Output()), "about to listen") {
		t.Errorf("output %q", server.Output())
	}
	var kinds []wire.EventKind
	for _, e := range s.Log.Events() {
		if e.Kind != wire.KindStderr {
			kinds = append(kinds, e.Kind)
		}
	}
	if got, want := fmt.Sprint(kinds), fmt.Sprint([]wire.EventKind{wire.KindStart, wire.KindSignal, wire.KindExit}); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	server.Stop(limit(t)) // a second time does nothing
	if _, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(server.Endpoint.URL, "http://"), "/mcp")); err == nil {
		t.Error("the server still accepts connections")
	}
}

func TestStartStubborn(t *testing.T) {
	needShell(t)
	noLeaks(t)
	server, err := helper("stubborn", "http://127.0.0.1:{port}/mcp").Run(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no patience: kill at once
	server.Stop(ctx)
	if got := server.Exit().Signal; got != "killed" {
		t.Errorf("exit %+v", server.Exit())
	}
}

func TestStartFailures(t *testing.T) {
	needShell(t)
	noLeaks(t)
	const url = "http://127.0.0.1:{port}/mcp"
	failing := helper("fail", url)
	failing.Endpoint.Header = http.Header{"X-Token": {"hunter22"}}
	tests := []struct {
		name  string
		start Start
		want  []string
	}{
		{"exits", failing, []string{"exited with status 3", "no configuration: token REDACTED"}},
		{"shell", Start{Command: Command{Args: Shell("exit 3")}, Endpoint: Endpoint{URL: url}}, []string{"cannot start the server: it exited with status 3"}},
		{"not found", Start{Command: Command{Args: []string{"/no/such/program"}}, Endpoint: Endpoint{URL: url}}, []string{"cannot start /no/such/program", "no such file"}},
		{"no command", Start{Endpoint: Endpoint{URL: url}}, []string{"no command was given"}},
		{"bad URL", helper("serve", "localhost"), []string{"must begin with http://"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.start.Run(limit(t))
			var start *StartError
			if !errors.As(err, &start) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
	t.Run("never listens", func(t *testing.T) {
		s := helper("idle", url)
		s.Log = newTestLog()
		ctx, cancel := context.WithCancelCause(limit(t))
		given := errors.New("given up")
		go func() {
			_, _ = s.Log.Await(ctx, 0, func(e *wire.Event) bool { return e.Kind == wire.KindStderr })
			cancel(given)
		}()
		_, err := s.Run(ctx)
		if !errors.Is(err, given) || !strings.Contains(err.Error(), "thinking") {
			t.Errorf("error %v", err)
		}
	})
}

// A start that takes too long tells so by its type, and the output in one line.
func TestStartTimeout(t *testing.T) {
	noLeaks(t)
	s := Start{
		Launcher: Func{Name: "slow", Run: func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) error {
			_, _ = io.WriteString(stdout, "loading\n\nstill \"loading\"\n")
			<-ctx.Done()
			return nil
		}},
		Endpoint: Endpoint{URL: "http://127.0.0.1:{port}/mcp"}, Wait: 300 * time.Millisecond,
	}
	_, err := s.Run(limit(t))
	var late *TimeoutError
	if !errors.As(err, &late) || !late.Start || late.After != s.Wait || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	if want := `within 300ms; its output ends with: "loading", "still \"loading\""`; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %q; want it to end with %q", err, want)
	}
}

// An output without end, or without newlines, is bounded.
func TestStartOutputIsBounded(t *testing.T) {
	noLeaks(t)
	addr := nobody(t)
	const flood = 4 << 20
	log := newTestLog()
	s := Start{
		Launcher: Func{Name: "chatty", Run: func(_ context.Context, _ io.Reader, stdout, _ io.Writer) error {
			_, _ = io.WriteString(stdout, strings.Repeat("x", flood)+"the end")
			return nil
		}},
		Endpoint: Endpoint{URL: "http://" + addr}, Log: log,
	}
	_, err := s.Run(limit(t))
	if err == nil || !strings.Contains(err.Error(), "its output ends with: \"xxx") || len(err.Error()) > 1000 {
		t.Errorf("error of %d bytes", len(fmt.Sprint(err)))
	}
	var kept int
	for _, e := range log.Events() {
		kept += len(e.Raw)
	}
	if kept == 0 || kept > 2*stderrHead {
		t.Errorf("%d bytes kept", kept)
	}
}

// A signal is in the log before the process can react to it.
func TestSignalIsRecordedFirst(t *testing.T) {
	log := newTestLog()
	sendSignal(log, "SIGTERM", func() error {
		if events := log.Events(); len(events) != 1 || events[0].Kind != wire.KindSignal || events[0].Note != "SIGTERM" {
			t.Errorf("recorded when it is sent: %v", events)
		}
		return errors.New("no such process")
	})
	if events := log.Events(); len(events) != 2 || !strings.Contains(events[1].Note, "no such process") {
		t.Errorf("recorded of the failure: %v", events)
	}
}

func TestTail(t *testing.T) {
	var kept tail
	var all []byte
	for i := range 5 * stderrTail {
		line := []byte{byte('a' + i%26)}
		all = append(all, line...)
		kept.write(line)
		if len(kept.kept) > 2*stderrTail {
			t.Fatalf("%d bytes are held", len(kept.kept))
		}
	}
	end, dropped := kept.end()
	if string(end) != string(all[4*stderrTail:]) || dropped != 4*stderrTail {
		t.Errorf("%d bytes kept, %d dropped", len(end), dropped)
	}
}
