//go:build unix

package transport

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func terminateGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGTERM)
	if !errors.Is(err, syscall.ESRCH) {
		return err
	}
	// Nobody is in the group: the process is gone, or has joined another one.
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// terminateGroupOf asks a group to end, and reports whether it was there.
func terminateGroupOf(group int) bool { return syscall.Kill(-group, syscall.SIGTERM) == nil }

func killGroup(p *os.Process) {
	// ESRCH: nobody is left, which is what we want.
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	// The process itself may have joined another group.
	_ = p.Kill()
}

// groupLives reports whether anybody is left in the group of a process that has ended.
func groupLives(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }

func exitOf(s *os.ProcessState) wire.Exit {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return wire.Exit{Code: -1, Signal: ws.Signal().String()}
	}
	return wire.Exit{Code: s.ExitCode()}
}
