package transport

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// output is our end of a pipe that a process writes to. One goroutine reads it.
type output struct {
	file *os.File
	late atomic.Bool // the process has ended
	held atomic.Bool // nothing was left to read, but somebody could still write
}

// finish lets the reader come to an end after a moment although another process may keep the
// pipe open: what the process itself wrote is in there once it has ended.
func (o *output) finish(moment time.Duration) {
	o.late.Store(true)
	_ = o.file.SetReadDeadline(time.Now().Add(moment)) // where it cannot be set, the reader waits
}

// Read reads what comes and, when the moment after the end of the process has passed, what is there.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	if !o.late.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	n, held, err := readNow(o.file, b)
	if held {
		o.held.Store(true)
		return 0, io.EOF
	}
	return n, err
}

func (o *output) Close() error { return o.file.Close() }
