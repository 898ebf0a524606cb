//go:build linux

package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// peerVariable makes the test binary a server that behaves as its value says,
// up to a colon; what follows tells the processes of one test from others.
const peerVariable = "MCPCONFORM_TEST_PEER"

func TestMain(m *testing.M) {
	if mode, _, ok := strings.Cut(os.Getenv(peerVariable), ":"); ok {
		peers[mode]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peers are the servers that a connection must put up with.
var peers = map[string]func(){
	"exit":   func() { os.Exit(3) },
	"silent": drainStdin,
	"text": func() {
		fmt.Print("Server running on stdio\n\n\xff\x00\r\n")
		drainStdin()
	},
	"flood":      func() { pour(bytes.Repeat([]byte("x"), 1<<16)) },
	"flood-line": func() { pour(bytes.Repeat([]byte("{}\n"), 1<<14)) },
	"close-stdout": func() {
		_ = os.Stdout.Close()
		drainStdin()
	},
	"partial": func() {
		fmt.Print(`{"jsonrpc":"2.0","id":1,"res`)
		os.Exit(1)
	},
	"halfway":        func() { fmt.Print("{}\n{"); hang() },
	"leaves-halfway": func() { fmt.Print("{}\n{"); spawn("deaf", nil) },
	"deaf":           hang, // stdin's end tells it nothing
	"immortal":       func() { signal.Ignore(syscall.SIGTERM); fmt.Println("{}"); hang() },
	"child":          func() { spawn("immortal", nil) },
	"detached":       func() { spawn("immortal", &syscall.SysProcAttr{Setsid: true}) },
	"parent":         func() { spawn("immortal", &syscall.SysProcAttr{Setsid: true}); drainStdin() },
	// A process that leaves another one behind, with an environment without the mark, which ends with
	// its stdin.
	"heir": func() {
		_, unique, _ := strings.Cut(os.Getenv(peerVariable), ":")
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{peerVariable + "=silent:" + unique}
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Print(strings.Repeat("{}\n", manyLines))
	},
	// A process that leaves its group, with an environment without the mark.
	"escape": func() {
		group, err := syscall.Getpgid(os.Getppid())
		if err == nil {
			err = syscall.Setpgid(0, group)
		}
		if err != nil {
			panic(err)
		}
		_, unique, _ := strings.Cut(os.Getenv(peerVariable), ":")
		panic(syscall.Exec(os.Args[0], os.Args[:1], []string{peerVariable + "=immortal:" + unique}))
	},
	"stderr": func() {
		w := bufio.NewWriter(os.Stderr)
		fmt.Fprintln(w, "the beginning")
		for range 400_000 {
			fmt.Fprintln(w, "a line of noise")
		}
		fmt.Fprint(w, "the end")
		_ = w.Flush()
		drainStdin()
	},
	"echo": func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
}

// manyLines are as many as fit into a pipe, so that nobody has to read them.
const manyLines = 10_000

func drainStdin() { _, _ = io.Copy(io.Discard, os.Stdin) }

func pour(chunk []byte) {
	for {
		if _, err := os.Stdout.Write(chunk); err != nil {
			return
		}
	}
}

// hang waits for nothing.
func hang() {
	r, w, err := os.Pipe()
	if err == nil {
		_, err = r.Read(make([]byte, 1))
	}
	panic(fmt.Sprint(w, err))
}

// spawn starts another peer that holds our stdout, and sees that it runs.
func spawn(mode string, attributes *syscall.SysProcAttr) {
	_, unique, _ := strings.Cut(os.Getenv(peerVariable), ":")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerVariable+"="+mode+":"+unique)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attributes
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// connect dials a peer and makes sure, at the end of the test, that nothing of
// it is left.
func connect(t *testing.T, mode string, d *Stdio, limits wire.Limits) *StdioConn {
	t.Helper()
	noLeaks(t)
	variable := fmt.Sprintf("%s=%s:%s-%d", peerVariable, mode, strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	_, unique, _ := strings.Cut(variable, ":")
	t.Cleanup(func() { leftover.Await(t, ":"+unique) })
	d.Launcher = Command{Args: []string{os.Args[0]}, Env: append(os.Environ(), variable, "GORACE=atexit_sleep_ms=0")}
	if d.ExitWait == 0 {
		d.ExitWait = 50 * time.Millisecond
	}
	conn, err := d.Dial(t.Context(), wire.NewTrace(limits).Connect(NameStdio, mode))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(limit(t)) })
	return conn.(*StdioConn)
}

// history returns what happened on a connection, one clause an event; stderr
// and the lines of stdout are left out.
func history(l *wire.Log) []string {
	var list []string
	for _, e := range l.Events() {
		switch e.Kind {
		case wire.KindStart:
			list = append(list, "start")
		case wire.KindClose:
			list = append(list, string(e.From)+" closes "+e.Stream)
		case wire.KindExit:
			list = append(list, e.Exit.String())
		case wire.KindSignal, wire.KindNote:
			list = append(list, e.Note)
		}
	}
	return list
}

// received returns what the server wrote to stdout.
func received(l *wire.Log) []string {
	var list []string
	for _, e := range l.Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Server {
			text := string(e.Raw)
			if e.Note != "" {
				text += " (" + e.Note + ")"
			}
			list = append(list, text)
		}
	}
	return list
}

func awaitKind(t *testing.T, c *StdioConn, kind wire.EventKind, from wire.Party) {
	t.Helper()
	_, err := c.Log().Await(limit(t), 0, func(e *wire.Event) bool { return e.Kind == kind && e.From == from })
	if err != nil {
		t.Fatalf("no %s from the %s: %v", kind, from, err)
	}
}

// The order of the shutdown is that of basic/lifecycle#stdio.
func TestStdioClose(t *testing.T) {
	byItself := []string{"start", "client closes stdin", "server closes stdout", "exited with status 0"}
	terminated := []string{"start", "client closes stdin", "SIGTERM", "server closes stdout", "ended by signal terminated"}
	killed := []string{"start", "client closes stdin", "SIGTERM", "SIGKILL", "server closes stdout", "ended by signal killed"}
	for _, c := range []struct {
		mode  string
		await wire.EventKind // before the close; "" for nothing
		want  []string
		lines []string
	}{
		{mode: "silent", want: byItself},
		{mode: "echo", want: byItself},
		{mode: "text", await: wire.KindMessage, want: byItself, lines: []string{"Server running on stdio", "", "\xff\x00\r"}},
		{mode: "exit", await: wire.KindExit, want: []string{"start", "server closes stdout", "exited with status 3"}},
		{mode: "close-stdout", await: wire.KindClose, want: []string{"start", "server closes stdout", "client closes stdin", "exited with status 0"}},
		{mode: "partial", await: wire.KindExit,
			want:  []string{"start", "server closes stdout", "exited with status 1"},
			lines: []string{`{"jsonrpc":"2.0","id":1,"res (the output ended without a newline)`}},
		{mode: "halfway", await: wire.KindMessage, want: terminated, lines: []string{"{}", "{ (" + cutOff + ")"}},
		{
			mode: "leaves-halfway", await: wire.KindExit, want: []string{"start", "server closes stdout", "exited with status 0"},
			lines: []string{"{}", "{ (" + cutOff + ")"},
		},
		{mode: "deaf", want: terminated},
		{mode: "immortal", await: wire.KindMessage, want: killed, lines: []string{"{}"}},
		{mode: "escape", await: wire.KindMessage, want: killed, lines: []string{"{}"}},
		{mode: "child", await: wire.KindExit, want: []string{"start", "server closes stdout", "exited with status 0"}},
		{mode: "detached", await: wire.KindExit, want: []string{"start", "server closes stdout", "exited with status 0"}},
		{mode: "parent", await: wire.KindMessage, want: byItself, lines: []string{"{}"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			wait := 50 * time.Millisecond
			if c.want[len(c.want)-1] == byItself[len(byItself)-1] {
				wait = time.Minute // it takes as long as it needs
			}
			conn := connect(t, c.mode, &Stdio{ExitWait: wait}, wire.DefaultLimits)
			if c.await != "" {
				awaitKind(t, conn, c.await, wire.Server)
			}
			if err := conn.Close(limit(t)); err != nil {
				t.Errorf("Close: %v", err)
			}
			got := history(conn.Log())
			if slices.Equal(c.want, terminated) {
				// On a busy machine SIGTERM may take longer than the wait; TestStdioStubborn gives it its time.
				c.want, got = c.want[:3], got[:3]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c.mode != "child" && c.mode != "detached" { // whose child may or may not have got to write
				if diff := cmp.Diff(c.lines, received(conn.Log())); diff != "" {
					t.Errorf("stdout (-want +got)\n%s", diff)
				}
			}
			if err := conn.Close(limit(t)); err != nil {
				t.Errorf("second Close: %v", err)
			}
			if _, err := conn.Send(t.Context(), Outgoing{Raw: []byte("{}")}); !errors.Is(err, ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
		})
	}
}

// A server's exit is noticed, and all that it wrote before is read, although a process that cannot be
// found keeps its output open.
func TestStdioHeir(t *testing.T) {
	conn := connect(t, "heir", &Stdio{}, wire.DefaultLimits)
	awaitKind(t, conn, wire.KindExit, wire.Server) // without a Close
	want := []string{"start", "server closes stdout", "another process kept the server's output open after the server had exited", "exited with status 0"}
	if diff := cmp.Diff(want, history(conn.Log())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if lines := received(conn.Log()); len(lines) != manyLines {
		t.Errorf("%d lines were read, not %d", len(lines), manyLines)
	}
}

// A context that has ended leaves no time for goodbyes.
func TestStdioCloseAtOnce(t *testing.T) {
	conn := connect(t, "immortal", &Stdio{ExitWait: time.Hour}, wire.DefaultLimits)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := conn.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := history(conn.Log()); got[len(got)-1] != "ended by signal killed" && got[len(got)-1] != "ended by signal terminated" {
		t.Errorf("it ended with %q", got)
	}
	if conn.dialer.stubborn.Load() {
		t.Error("the server counts as stubborn although it had no time")
	}
}

// Closed while it is closed, from several sides.
func TestStdioCloseConcurrently(t *testing.T) {
	conn := connect(t, "deaf", &Stdio{}, wire.DefaultLimits)
	ended := make(chan error)
	for range 4 {
		go func() { ended <- conn.Close(context.Background()) }()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	select {
	case <-conn.Done():
	default:
		t.Error("Close returned before the end")
	}
}

// Once a target has outlived the end of its stdin, later connections do not
// wait for what does not happen.
func TestStdioStubborn(t *testing.T) {
	d := &Stdio{ExitWait: 100 * time.Millisecond}
	_ = connect(t, "deaf", d, wire.DefaultLimits).Close(limit(t))
	if !d.stubborn.Load() {
		t.Fatal("the server does not count as stubborn")
	}
	d.ExitWait = time.Hour // the wait after SIGTERM: it does end then
	_ = connect(t, "deaf", d, wire.DefaultLimits).Close(limit(t))
}

func TestStdioFloods(t *testing.T) {
	for _, c := range []struct {
		mode   string
		limits wire.Limits
		reason string
	}{
		{"flood", wire.Limits{Message: 1 << 16, Total: 1 << 24, Events: 1000}, "a line is longer than 65536 bytes"},
		{"flood-line", wire.Limits{Message: 1 << 16, Total: 1 << 24, Events: 1000}, wire.ErrFlood.Error()},
		{"flood-line", wire.Limits{Message: 1 << 16, Total: 1 << 14, Events: 1 << 20}, wire.ErrFlood.Error()},
	} {
		conn := connect(t, c.mode, &Stdio{}, c.limits)
		awaitKind(t, conn, wire.KindExit, wire.Server) // without a Close
		want := []string{"start", "reading was stopped: " + c.reason, "ended by signal killed"}
		if c.reason == wire.ErrFlood.Error() {
			want = slices.Insert(want, 1, "the record ends here: "+c.reason)
		}
		if diff := cmp.Diff(want, history(conn.Log())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.mode, diff)
		}
		if n := conn.Log().Len(); n > c.limits.Events+10 {
			t.Errorf("%s: %d events are kept", c.mode, n)
		}
		if c.mode == "flood" {
			if got := received(conn.Log()); len(got) != 1 || len(got[0]) != c.limits.Message {
				t.Errorf("%d lines are kept", len(got))
			}
		}
	}
}

func TestStdioStderr(t *testing.T) {
	conn := connect(t, "stderr", &Stdio{ExitWait: time.Minute}, wire.DefaultLimits)
	if err := conn.Close(limit(t)); err != nil {
		t.Fatal(err)
	}
	var first, last *wire.Event
	var kept, dropped int64
	events := 0
	for _, e := range conn.Log().Events() {
		if e.Kind == wire.KindStderr {
			if first == nil {
				first = e
			}
			last = e
			events++
			kept += int64(len(e.Raw))
			dropped += e.Dropped
		}
	}
	if string(first.Raw) != "the beginning" || !bytes.HasSuffix(last.Raw, []byte("noise\nthe end")) {
		t.Errorf("kept from %q to %q", first.Raw, last.Raw)
	}
	if kept > stderrHead+stderrTail || events > 2000 {
		t.Errorf("%d bytes in %d events are kept", kept, events)
	}
	// Each line's newline is not kept, but for those at the end.
	written := int64(len("the beginning\n") + 400_000*len("a line of noise\n") + len("the end"))
	if got := kept + int64(events-1) + dropped; got != written {
		t.Errorf("%d bytes are accounted for, %d were written", got, written)
	}
}

// TestStdioBlockedWrite tests that a server which never reads blocks one write and nothing more. The messages behind
// it count as not sent.
func TestStdioBlockedWrite(t *testing.T) {
	conn := connect(t, "deaf", &Stdio{}, wire.DefaultLimits)
	large := bytes.Repeat([]byte("x"), 1<<20)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		_, _ = conn.Log().Await(ctx, 0, func(e *wire.Event) bool { return e.Kind == wire.KindMessage })
		cancel(cause)
	}()
	for blocked := range 2 {
		switch sent, err := conn.Send(ctx, Outgoing{Raw: large}); {
		case !errors.Is(err, cause):
			t.Errorf("Send: %v", err)
		case (sent == nil) != (blocked > 0):
			t.Errorf("message %d: recorded as %v", blocked, sent)
		}
	}
	blocked := make(chan error)
	go func() {
		_, err := conn.Send(context.Background(), Outgoing{Raw: large})
		blocked <- err
	}()
	if err := conn.Close(limit(t)); err != nil {
		t.Error(err)
	}
	if err := <-blocked; err == nil {
		t.Error("a blocked write succeeded")
	}
	recorded := 0
	for _, e := range conn.Log().Events() {
		if e.Kind == wire.KindMessage {
			recorded++
		}
	}
	if recorded != 1 {
		t.Errorf("%d messages are recorded, of which one was begun", recorded)
	}
}

// A write to a server that is gone is an error, not a signal.
func TestStdioWriteAfterExit(t *testing.T) {
	conn := connect(t, "exit", &Stdio{}, wire.DefaultLimits)
	var err error
	for err == nil {
		_, err = conn.Send(limit(t), Outgoing{Raw: []byte("{}")})
	}
	if !errors.Is(err, ErrClosed) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
}

func TestStdioWrite(t *testing.T) {
	conn := connect(t, "echo", &Stdio{ExitWait: time.Minute}, wire.DefaultLimits)
	m := Outgoing{Raw: []byte(`{"id":1}`), Deliberate: []string{"some.requirement"}}
	sent, err := conn.Send(limit(t), m)
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: Stdin, Raw: m.Raw, Deliberate: m.Deliberate}
	got := wire.Event{Kind: sent.Kind, From: sent.From, Stream: sent.Stream, Raw: sent.Raw, Deliberate: sent.Deliberate}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded (-want +got)\n%s", diff)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if late, err := conn.Send(ended, m); late != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context a message is sent as %v: %v", late, err)
	}
	if _, err := conn.Write(limit(t), m, []byte(`{"id`), []byte("\":2}\r\n\n[")); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(limit(t)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{`{"id":1}`, "{\"id\":2}\r", "", "[ (" + unterminated + ")"}, received(conn.Log())); diff != "" {
		t.Errorf("came back (-want +got)\n%s", diff)
	}
	for _, e := range conn.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Server && Unterminated(e) != (string(e.Raw) == "[") {
			t.Errorf("%q is unterminated: %t", e.Raw, Unterminated(e))
		}
	}
}

// TestStdioWritesAtTheSameTime tests that messages sent at the same time do not mix, even if one is written in
// pieces.
func TestStdioWritesAtTheSameTime(t *testing.T) {
	conn := connect(t, "echo", &Stdio{ExitWait: time.Minute}, wire.DefaultLimits)
	long := []byte(`{"id":1,"method":"` + strings.Repeat("x", 2*pipeSize) + `"}`)
	want := make([]string, 0, 300)
	var senders sync.WaitGroup
	send := func(raw []byte, chunks ...[]byte) {
		want = append(want, string(raw))
		senders.Go(func() {
			var err error
			if m := (Outgoing{Raw: raw}); chunks == nil {
				_, err = conn.Send(limit(t), m)
			} else {
				_, err = conn.Write(limit(t), m, chunks...)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 100 {
		send(long)
		send([]byte(`{"id":2}`))
		send([]byte(`{"id":3}`), []byte(`{"id`), []byte(`":3`), []byte("}\n"))
	}
	senders.Wait()
	if err := conn.Close(limit(t)); err != nil {
		t.Error(err)
	}
	got := received(conn.Log())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("of %d messages %d lines came back, not all as they were sent", len(want), len(got))
	}
}

func TestStdioCannotStart(t *testing.T) {
	noLeaks(t)
	plain := filepath.Join(t.TempDir(), "plain")
	dir := filepath.Dir(plain)
	for name, text := range map[string]string{"plain": "text", "bare": "echo hello\n", "lost": "#!/no/such/interpreter\necho hello\n"} {
		mode := os.FileMode(0o700)
		if name == "plain" {
			mode = 0o600
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{}, "cannot start (empty command): no command was given"},
		{Command{Args: []string{"mcpconform-no-such-command"}}, "executable file not found"},
		{Command{Args: []string{"/no/such/file"}}, "cannot start /no/such/file: no such file or directory"},
		{Command{Args: []string{"no-such-command --flag"}}, "write program and arguments as words of their own"},
		{Command{Args: []string{"./no such/command"}}, "write program and arguments as words of their own"},
		{Command{Args: []string{"bare"}, Dir: dir}, "in the current folder"},
		{Command{Args: []string{plain}}, "permission denied: the file is not executable"},
		{Command{Args: []string{"./plain"}, Dir: dir}, "permission denied: the file is not executable"},
		{Command{Args: []string{dir}}, "it is a directory"},
		{Command{Args: []string{filepath.Join(dir, "bare")}}, "exec format error: it is neither"},
		{Command{Args: []string{filepath.Join(dir, "lost")}}, `the interpreter is missing that its first line names, "#!/no/such/interpreter"`},
		{Command{Args: []string{os.Args[0]}, Dir: "/no/such/directory"}, "working directory: stat /no/such/directory: no such file or directory"},
	} {
		log := wire.NewTrace(wire.DefaultLimits).Connect(NameStdio, "")
		conn, err := (&Stdio{Launcher: c.command}).Dial(t.Context(), log)
		var start *StartError
		if conn != nil || !errors.As(err, &start) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Dial %v = %v, %v; want an error with %q", c.command, conn, err, c.want)
		}
		if got := history(log); len(got) != 1 || !strings.HasPrefix(got[0], "start: ") {
			t.Errorf("the log of %v holds %q", c.command, got)
		}
		if _, err := log.Await(t.Context(), 0, func(*wire.Event) bool { return false }); !errors.Is(err, wire.ErrEnded) {
			t.Errorf("the log of %v goes on: %v", c.command, err)
		}
	}
}

func TestCommandEnvironment(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	proc, err := Command{Args: []string{"sh", "-c", `pwd; echo "$A ${` + Mark + `:+marked}"; exit 7`}, Dir: dir, Env: []string{"A=b", "PATH=" + os.Getenv("PATH")}}.Launch()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(proc.Stdout())
	if want := dir + "\nb marked\n"; string(out) != want || err != nil {
		t.Errorf("it wrote %q, %v; want %q", out, err, want)
	}
	<-proc.Done()
	if proc.Exit() != (wire.Exit{Code: 7}) {
		t.Errorf("it %v", proc.Exit())
	}
	proc.Kill() // after the end, to no effect
	if err := proc.Terminate(); err != nil {
		t.Errorf("Terminate after the end: %v", err)
	}
	_, _, _ = proc.Stdin().Close(), proc.Stdout().Close(), proc.Stderr().Close()
}

func TestKillAll(t *testing.T) {
	conns := []*StdioConn{connect(t, "immortal", &Stdio{}, wire.DefaultLimits), connect(t, "deaf", &Stdio{}, wire.DefaultLimits)}
	t.Cleanup(func() { live.ended = false })
	dir, _, err := TempDir()
	if err != nil {
		t.Fatal(err)
	}
	KillAll()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder: %v", err)
	}
	for _, c := range conns {
		awaitKind(t, c, wire.KindExit, wire.Server)
	}
	if _, err := (Command{Args: []string{os.Args[0]}}).Launch(); !errors.Is(err, errEnding) {
		t.Errorf("a process that starts after the end: %v", err)
	}
	live.all.Range(func(p, _ any) bool {
		t.Errorf("process %d counts as alive", p.(*osProcess).cmd.Process.Pid)
		return true
	})
}

// Reading a line must not depend on how it is cut into reads.
func TestReadLine(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a\n\nb", []string{"a", "", "b!"}},
		{"12345\n1\n", []string{"12345", "1"}},
		{"123456\n1\n", []string{"12345+2"}}, // with its newline
		{"1234567890", []string{"12345+5"}},
		{strings.Repeat("x", 100), []string{"xxxxx+11"}}, // what the buffer held
	} {
		r := bufio.NewReaderSize(strings.NewReader(c.text), 16)
		var got []string
		for {
			line, surplus, err := ReadLine(r, 5)
			text := string(line)
			if len(surplus) > 0 {
				got = append(got, fmt.Sprintf("%s+%d", text, len(surplus)))
				break
			}
			if err != nil {
				if text != "" {
					got = append(got, text+"!")
				}
				break
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", c.text, diff)
		}
	}
}

func TestFunc(t *testing.T) {
	noLeaks(t)
	block := func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error
		want []string
	}{
		{"echo", func(_ context.Context, in io.Reader, out, _ io.Writer) error {
			_, err := io.Copy(out, in)
			return err
		}, []string{"start", "client closes stdin", "server closes stdout", "exited with status 0"}},
		{"fails", func(_ context.Context, in io.Reader, _, stderr io.Writer) error {
			_, _ = io.Copy(io.Discard, in)
			fmt.Fprintln(stderr, "broken")
			return errors.New("broken")
		}, []string{"start", "client closes stdin", "server closes stdout", "exited with status 1"}},
		{"deaf", block, []string{"start", "client closes stdin", "SIGTERM", "server closes stdout", "ended by signal terminated"}},
	} {
		wait := time.Minute
		if c.name == "deaf" {
			wait = 10 * time.Millisecond
		}
		d := &Stdio{Launcher: Func{Name: c.name, Run: c.run}, ExitWait: wait}
		conn, err := d.Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect(NameStdio, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Send(deadEnd(t, c.name), Outgoing{Raw: []byte(`{"id":1}`)}); (err != nil) != (c.name == "deaf") {
			t.Errorf("%s: Send: %v", c.name, err)
		}
		if err := conn.Close(limit(t)); err != nil {
			t.Errorf("%s: Close: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, history(conn.Log())); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
	t.Run("flood", func(t *testing.T) {
		d := &Stdio{Launcher: Func{Name: "flood", Run: func(_ context.Context, _ io.Reader, out, _ io.Writer) error {
			for {
				if _, err := out.Write([]byte("x")); err != nil {
					return err
				}
			}
		}}}
		conn, err := d.Dial(t.Context(), wire.NewTrace(wire.Limits{Message: 100, Total: 1000, Events: 10}).Connect(NameStdio, ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Log().Await(limit(t), 0, func(e *wire.Event) bool { return e.Kind == wire.KindExit }); err != nil {
			t.Error(err)
		}
		if err := conn.Close(limit(t)); err != nil {
			t.Error(err)
		}
	})
}

// deadEnd returns a context that has ended for the peer that never reads.
func deadEnd(t *testing.T, name string) context.Context {
	ctx, cancel := context.WithCancel(limit(t))
	t.Cleanup(cancel)
	if name == "deaf" {
		cancel()
	}
	return ctx
}
