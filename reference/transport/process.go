package transport

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Process is a running server: an OS process, or a function of this program
// behind pipes.
type Process interface {
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	// Done is closed when the process has exited.
	Done() <-chan struct{}
	// Exit tells how the process exited, once Done is closed.
	Exit() wire.Exit
	// Terminate asks the process and its children to end (SIGTERM).
	Terminate() error
	// Kill ends the process, its children and whoever still carries its mark
	// (SIGKILL), who are gone when it returns. It may be called after the exit.
	Kill()
}

// Launcher starts processes of one kind.
type Launcher interface {
	Launch() (Process, error)
	// String names what is launched, for messages.
	String() string
}

// Command launches an OS process in a process group of its own.
type Command struct {
	Args []string // program and arguments
	Dir  string   // working directory; empty for the current one
	// Env is the whole environment, NAME=value; nil inherits ours.
	Env []string
	// Abandoned says that the process may outlive the program, if that is killed or leaves it behind.
	Abandoned bool
	// Isolation of the process. Whether the machine has it, Isolation.Check tells before.
	Isolation Isolation
}

// Mark is the environment variable by which processes of a run are found again
// when they left their process group.
const Mark = "MCPCONFORM_PROCESS"

func (c Command) String() string {
	if len(c.Args) == 0 {
		return "(empty command)"
	}
	return c.Args[0]
}

// Launch starts the command. The error says whether it was not found, not
// executable or refused by the system.
func (c Command) Launch() (Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no command was given")
	}
	p := &osProcess{mark: rand.Text(), abandoned: c.Abandoned, done: make(chan struct{}), reaped: make(chan struct{})}
	args, err := c.isolated()
	if err != nil {
		return nil, c.startError(err)
	}
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Dir = c.Dir
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	p.cmd.Env = append(env[:len(env):len(env)], Mark+"="+p.mark)
	setGroup(p.cmd)
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdout, p.stderr = pipes.ours[0], &output{file: pipes.ours[1]}, &output{file: pipes.ours[2]}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes.theirs[0], pipes.theirs[1], pipes.theirs[2]
	if c.Isolation.Sandbox {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(pipes.theirs[:], pipes.ours[:]...))
			return nil, fmt.Errorf("open a pipe: %w", err)
		}
		p.cmd.ExtraFiles, p.status = []*os.File{w}, r
	}
	p.older = allPIDs()
	err = live.start(p)
	closeAll(pipes.theirs[:])
	closeAll(p.cmd.ExtraFiles)
	if err != nil {
		closeAll(pipes.ours[:])
		if p.status != nil {
			_ = p.status.Close()
		}
		return nil, c.startError(err)
	}
	if p.status != nil {
		// It comes before the program is started, or bubblewrap ends.
		p.child = child(p.status)
	}
	p.keepWithin(c.Isolation)
	go p.wait()
	return p, nil
}

// isolated returns the command line in the sandbox, if there is to be one.
func (c Command) isolated() ([]string, error) {
	if !c.Isolation.Sandbox {
		return c.Args, nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	// Bubblewrap would say in its own words that a program is missing.
	program := c.Args[0]
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	if program, err = exec.LookPath(program); err != nil {
		return nil, err
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	return c.Isolation.wrap(bwrap, dir, append([]string{program}, c.Args[1:]...)), nil
}

// startError says why the command could not be started and what to do. It leaves out the name of the system call.
func (c Command) startError(err error) error {
	if c.Dir != "" {
		if _, dirErr := os.Stat(c.Dir); dirErr != nil {
			return fmt.Errorf("working directory: %w", dirErr)
		}
	}
	var call *fs.PathError
	var lookup *exec.Error
	switch {
	case errors.As(err, &call):
		err = call.Err
	case errors.As(err, &lookup):
		err = lookup.Err
	}
	if cause := c.startCause(err); cause != "" {
		return fmt.Errorf("%w: %s", err, cause)
	}
	return err
}

// startCause says in a clause what about the program's file explains an error of its
// start, or "".
func (c Command) startCause(err error) string {
	file := c.Args[0]
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	info, missing := os.Stat(file)
	sought := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	switch {
	case missing != nil && sought && strings.ContainsAny(c.Args[0], " \t"):
		return "all of it is taken for the name of the program; write program and arguments as words of their own"
	case missing != nil:
		return ""
	case info.IsDir():
		return "it is a directory, not a program"
	case errors.Is(err, exec.ErrNotFound):
		return "a file in the current folder is named with ." + string(filepath.Separator) + " in front"
	case errors.Is(err, fs.ErrPermission):
		return "the file is not executable; make it so (chmod +x), or write its interpreter in front, such as " +
			"node or python3"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this machine nor a script whose first line names its interpreter " +
			"(#!/bin/sh)"
	case errors.Is(err, fs.ErrNotExist):
		return "the interpreter is missing that its first line names, " + wire.Quote(firstLine(file), maxFirstLine)
	}
	return ""
}

// maxFirstLine bounds what is read of a script, and shown.
const maxFirstLine = 100

// firstLine returns the beginning of a file, up to the end of its first line.
func firstLine(name string) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	head, _ := io.ReadAll(io.LimitReader(file, maxFirstLine))
	line, _, _ := strings.Cut(string(head), "\n")
	return line
}

type pipes struct{ ours, theirs [3]*os.File }

func openPipes() (*pipes, error) {
	var p pipes
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.ours[:i])
			closeAll(p.theirs[:i])
			return nil, fmt.Errorf("open a pipe: %w", err)
		}
		if i == 0 {
			r, w = w, r
		}
		p.ours[i], p.theirs[i] = r, w
	}
	return &p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// live holds the OS processes that have not been reaped, so that an
// interrupted run can end them at once.
var live launched

type launched struct {
	mu    sync.RWMutex // held for writing only to end them all
	all   sync.Map     // *osProcess → struct{}
	dirs  sync.Map     // path → struct{}
	ended bool
}

// errEnding is the error of a launch after KillAll.
var errEnding = errors.New("the program is ending")

func (l *launched) start(p *osProcess) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ended {
		return errEnding
	}
	guarding.launches(p)
	if err := p.cmd.Start(); err != nil {
		guarding.ended(p)
		return err
	}
	guarding.launched(p)
	l.all.Store(p, struct{}{})
	return nil
}

// TempDir makes a temporary folder, which remove removes, and KillAll if that comes first.
func TempDir() (dir string, remove func(), err error) {
	live.mu.RLock()
	defer live.mu.RUnlock()
	if live.ended {
		return "", nil, errEnding
	}
	if dir, err = os.MkdirTemp("", "mcpconform-"); err != nil {
		return "", nil, err
	}
	live.dirs.Store(dir, struct{}{})
	return dir, func() {
		_ = os.RemoveAll(dir)
		live.dirs.Delete(dir)
	}, nil
}

// KillAll kills every process that is still running, lets none start afterwards, and
// removes temporary folders. It is meant for a program that must end now.
func KillAll() {
	live.mu.Lock()
	defer live.mu.Unlock()
	live.ended = true
	live.all.Range(func(p, _ any) bool {
		p.(*osProcess).Kill()
		return true
	})
	live.dirs.Range(func(dir, _ any) bool {
		_ = os.RemoveAll(dir.(string))
		return true
	})
}

type osProcess struct {
	cmd            *exec.Cmd
	mark           string
	abandoned      bool  // the guard leaves it alone
	older          []int // processes that were there before it
	stdin          *os.File
	stdout, stderr *output
	done           chan struct{}
	exit           wire.Exit
	status         *os.File       // where a sandbox is told of; nil without one
	child          int            // the group in the sandbox, or 0
	reaped         chan struct{}  // closed when the process was waited for
	watched        sync.WaitGroup // who keeps it within its limits
	limit          string         // that it exceeded
	ended          atomic.Bool    // by a signal of ours, it or what it has left behind
}

func (p *osProcess) wait() {
	// The error repeats what ProcessState says.
	_ = p.cmd.Wait()
	close(p.reaped)
	p.watched.Wait()
	if p.status != nil {
		_ = p.status.Close()
	}
	p.exit = exitOf(p.cmd.ProcessState)
	p.exit.Limit = p.limit
	live.all.Delete(p)
	guarding.ended(p)
	close(p.done)
}

func (p *osProcess) Stdin() io.WriteCloser { return p.stdin }
func (p *osProcess) Stdout() io.ReadCloser { return p.stdout }
func (p *osProcess) Stderr() io.ReadCloser { return p.stderr }
func (p *osProcess) Done() <-chan struct{} { return p.done }
func (p *osProcess) Exit() wire.Exit       { return p.exit }

// finish lets the readers of the output come to an end a moment after the process has.
func (p *osProcess) finish(moment time.Duration) {
	p.stdout.finish(moment)
	p.stderr.finish(moment)
}

// held reports whether another process kept the output open.
func (p *osProcess) held() bool { return p.stdout.held.Load() || p.stderr.held.Load() }

// cut reports whether we have ended the process or its leftover processes, or stop reading although another process
// may still write.
func (p *osProcess) cut() bool { return p.ended.Load() || p.held() }

// Terminate asks the processes in a sandbox and not bubblewrap, whose end is theirs.
func (p *osProcess) Terminate() error {
	p.ended.Store(true)
	if p.child > 0 && terminateGroupOf(p.child) {
		return nil
	}
	return terminateGroup(p.cmd.Process)
}

func (p *osProcess) Kill() {
	select {
	case <-p.done:
		p.ended.CompareAndSwap(false, groupLives(p.cmd.Process))
	default:
		p.ended.Store(true)
	}
	killGroup(p.cmd.Process)
	killMarked(Mark+"="+p.mark, p.older)
}

// Func launches a function of this program as if it were a process: it reads
// stdin until the end and returns. Terminate and Kill cancel its context.
type Func struct {
	Name string
	Run  func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error
}

func (f Func) String() string { return f.Name }

// Launch starts the function in a goroutine, which ends with the process.
func (f Func) Launch() (Process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &funcProcess{cancel: cancel, done: make(chan struct{})}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	p.stdin, p.stdout, p.stderr = inW, outR, errR
	go func() {
		defer close(p.done)
		defer cancel()
		if err := f.Run(ctx, inR, outW, errW); err != nil && ctx.Err() == nil {
			p.exit.Code = 1
			var status interface{ ExitCode() int }
			if errors.As(err, &status) {
				p.exit.Code = status.ExitCode()
			}
		}
		if ctx.Err() != nil {
			p.exit = wire.Exit{Code: -1, Signal: "terminated"}
		}
		_ = inR.Close()
		_ = outW.Close()
		_ = errW.Close()
	}()
	return p, nil
}

type funcProcess struct {
	cancel context.CancelFunc
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	stderr *io.PipeReader
	done   chan struct{}
	exit   wire.Exit
	ended  atomic.Bool // by us
}

func (p *funcProcess) Stdin() io.WriteCloser { return p.stdin }
func (p *funcProcess) Stdout() io.ReadCloser { return p.stdout }
func (p *funcProcess) Stderr() io.ReadCloser { return p.stderr }
func (p *funcProcess) Done() <-chan struct{} { return p.done }
func (p *funcProcess) Exit() wire.Exit       { return p.exit }

// cut is as that of an osProcess.
func (p *funcProcess) cut() bool { return p.ended.Load() }

// Terminate cancels the context of the function.
func (p *funcProcess) Terminate() error {
	p.ended.Store(true)
	p.cancel()
	return nil
}

func (p *funcProcess) Kill() {
	select {
	case <-p.done:
		return // it has closed all there is
	default:
	}
	p.ended.Store(true)
	p.cancel()
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}
