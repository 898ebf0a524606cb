package transport

import (
	"os"
	"os/exec"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func setGroup(*exec.Cmd) {}

// Windows has no signal that asks a process to end.
func terminateGroup(p *os.Process) error { return p.Kill() }

func terminateGroupOf(int) bool { return false }

func killGroup(p *os.Process) { _ = p.Kill() }

func groupLives(*os.Process) bool { return false }

func exitOf(s *os.ProcessState) wire.Exit { return wire.Exit{Code: s.ExitCode()} }
