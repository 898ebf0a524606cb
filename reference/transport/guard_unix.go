//go:build unix

package transport

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A guard ends the processes that this program has launched, if the program itself is killed. It is a shell in a
// session of its own, started with the first process. It reads the process groups from its input, and kills the
// remaining ones when the input ends.
type guard struct {
	once  sync.Once
	mu    sync.Mutex
	input *os.File // nil if there is no guard
}

// guarding is the only guard.
var guarding guard

// watch is the script of the shell. A line is the mark of a process and its group: ? before its start, - after its
// end. If /proc shows the environment, the mark also finds processes with an unknown group, and processes that have
// left their group.
const watch = `trap '' HUP INT TERM
live=' '
while read -r mark group; do
	case $live in *" $mark:"*)
		rest=${live#* "$mark":}
		live="${live%% "$mark":*} ${rest#* }" ;;
	esac
	case $group in
	-) ;;
	*) live="$live$mark:$group " ;;
	esac
done
for entry in $live; do
	case $entry in
	*:\?) ;;
	*) kill -s KILL -- "-${entry#*:}" ;;
	esac
	for again in 1 2 3; do
		for path in $(grep -ls "` + Mark + `=${entry%%:*}" /proc/[0-9]*/environ); do
			path=${path#/proc/}
			kill -s KILL -- "${path%/environ}"
		done
	done
done
`

// launches tells the guard of a process that is about to be started.
func (g *guard) launches(p *osProcess) {
	if !p.abandoned {
		g.once.Do(g.start)
	}
	g.tell(p, "?")
}

// launched tells the guard of the group of a process.
func (g *guard) launched(p *osProcess) { g.tell(p, strconv.Itoa(p.cmd.Process.Pid)) }

// ended tells the guard of a process that was waited for, or could not be started.
func (g *guard) ended(p *osProcess) { g.tell(p, "-") }

func (g *guard) start() {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command(shell, "-c", watch)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	// A terminal or a runner may kill our whole group; the guard has to survive that.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return
	}
	_ = cmd.Process.Release() // it outlives us
	g.input = w
}

// tellWait is how long a guard that does not read is waited for.
const tellWait = time.Second

// tell tells the guard what is the group of a process.
func (g *guard) tell(p *osProcess, group string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.input == nil || p.abandoned {
		return
	}
	_ = g.input.SetWriteDeadline(time.Now().Add(tellWait))
	if _, err := fmt.Fprintf(g.input, "%s %s\n", p.mark, group); err != nil {
		// Somebody has killed it, and half a line would mislead it.
		_ = g.input.Close()
		g.input = nil
	}
}
