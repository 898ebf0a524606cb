package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// sandboxable runs nothing in such a sandbox, to see whether it can be had.
func sandboxable(i Isolation) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return errors.New("a sandbox needs bubblewrap, and there is no bwrap on the PATH: install the package " +
			"bubblewrap")
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultStartWait)
	defer cancel()
	line := i.wrap(bwrap, "/", []string{"/proc/self/exe", "--version"})
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	status, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = status.Close() }()
	var said bytes.Buffer
	cmd.Stderr, cmd.ExtraFiles = &said, []*os.File{status}
	// The program is of no interest here; the question is whether bubblewrap starts it. Any program will do, such as
	// /proc/self/exe.
	err = cmd.Run()
	if err == nil {
		return nil
	}
	words := bytes.TrimSpace(said.Bytes())
	words = words[:min(len(words), 1<<10)]
	return fmt.Errorf("this machine gives bubblewrap no sandbox: %q (%w). It needs version 0.7 or later and "+
		"user namespaces, which "+
		"containers and some systems refuse to all but root (kernel.unprivileged_userns_clone, "+
		"kernel.apparmor_restrict_unprivileged_userns, docker --privileged)",
		words, err)
}

func limitable() error {
	if _, err := os.Stat(procFile(os.Getpid(), "status")); err != nil {
		return fmt.Errorf("limits of memory and processes need /proc: %w", err)
	}
	return nil
}

// measured is how often the processes of a program are measured: one that takes gigabytes a
// second exceeds its limit by some dozen megabytes.
const measured = 20 * time.Millisecond

// keepWithin ends the process when it exceeds a limit.
func (p *osProcess) keepWithin(i Isolation) {
	if i.Memory == 0 && i.Processes == 0 {
		return
	}
	p.watched.Go(func() {
		f := family{pid: p.cmd.Process.Pid, members: make(map[int]string)}
		ticker := time.NewTicker(measured)
		defer ticker.Stop()
		for {
			select {
			case <-p.reaped:
				return
			case <-ticker.C:
			}
			if reason := i.exceeded(f.measure()); reason != "" {
				p.limit = reason
				p.Kill()
				return
			}
		}
	})
}

// family are the processes of a program: it, what it has started, and what is in its group.
type family struct {
	pid     int
	members map[int]string // by id, when each began
}

// relative is what /proc tells of a process.
type relative struct {
	parent, group int
	began         string
}

// measure returns how many processes there are and how many bytes they hold.
func (f *family) measure() (processes int, memory int64) {
	f.find()
	for pid := range f.members {
		memory += held(pid)
	}
	return len(f.members), memory
}

// find finds the members. A member stays a member after its parent has gone.
func (f *family) find() {
	all := make(map[int]relative)
	for _, pid := range allPIDs() {
		if r, ok := lookUp(pid); ok {
			all[pid] = r
		}
	}
	belongs := make(map[int]string)
	for pid, r := range all {
		if pid == f.pid || r.group == f.pid || f.members[pid] == r.began {
			belongs[pid] = r.began
		}
	}
	for found := true; found; {
		found = false
		for pid, r := range all {
			if _, parent := belongs[r.parent]; parent && belongs[pid] == "" {
				belongs[pid], found = r.began, true
			}
		}
	}
	f.members = belongs
}

// lookUp reads /proc/PID/stat; proc_pid_stat(5). A zombie is not a process here.
func lookUp(pid int) (relative, bool) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	fields := fromThird(stat)
	if err != nil || len(fields) < 20 || string(fields[0]) == "Z" {
		return relative{}, false
	}
	parent, errParent := strconv.Atoi(string(fields[1]))
	group, errGroup := strconv.Atoi(string(fields[2]))
	return relative{parent, group, string(fields[19])}, errParent == nil && errGroup == nil
}

// holding are the lines of /proc/PID/status that count.
var holding = []string{"RssAnon:", "RssShmem:", "VmSwap:"}

// held returns how many bytes of memory a process holds of its own.
func held(pid int) (n int64) {
	status, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		words := bytes.Fields(line)
		if len(words) >= 2 && slices.Contains(holding, string(words[0])) {
			kilobytes, _ := strconv.ParseInt(string(words[1]), 10, 64)
			n += kilobytes << 10
		}
	}
	return n
}
