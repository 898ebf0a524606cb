package clienthooks

import "github.com/mcpconform/mcpconform/reference/transport"

// Launcher remembers the process that was launched last.
type Launcher struct {
	transport.Launcher
	Process transport.Process
}

func (l *Launcher) Launch() (transport.Process, error) {
	p, err := l.Launcher.Launch()
	l.Process = p
	return p, err
}
