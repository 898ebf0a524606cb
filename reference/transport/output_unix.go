//go:build unix

package transport

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// readNow reads what is in a pipe whose deadline has passed. If nothing is and somebody may still write to
// it, held is true.
func readNow(file *os.File, b []byte) (n int, held bool, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	_ = file.SetReadDeadline(time.Time{})
	defer func() { _ = file.SetReadDeadline(time.Unix(1, 0)) }()
	var call error
	err = raw.Read(func(fd uintptr) bool {
		for {
			if n, call = syscall.Read(int(fd), b); !errors.Is(call, syscall.EINTR) {
				return true // in any case, so that it does not wait
			}
		}
	})
	switch {
	case err != nil:
		return 0, false, err
	case errors.Is(call, syscall.EAGAIN):
		return 0, true, nil
	case call != nil:
		return 0, false, call
	case n == 0:
		return 0, false, io.EOF
	}
	return n, false, nil
}
