package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Isolation keeps a launched program from the rest of the machine. The zero value does not.
type Isolation struct {
	// Sandbox gives the program namespaces of its own: it sees no other processes, can
	// write nowhere but in empty temporary folders that only it has, and its
	// processes end with it, all of them.
	Sandbox bool
	// Network leaves a program in a sandbox the network; without it, it has a loopback
	// interface of its own and nothing else.
	Network bool
	// Writable are folders that a program in a sandbox may write to.
	Writable []string
	// Shown are files and folders that a program in a sandbox needs, wherever they are:
	// temporary folders are hidden from it.
	Shown []string

	// Memory is how many bytes the processes of the program may hold together, without
	// the files that they map; 0 is no limit.
	Memory int64
	// Processes is how many processes the program may be; 0 is no limit.
	Processes int
}

// Any reports whether anything is kept from the program.
func (i Isolation) Any() bool { return i.Sandbox || i.Memory > 0 || i.Processes > 0 }

// Check says in an error what of it this machine does not have, and what to do.
func (i Isolation) Check() error {
	if i.Memory > 0 || i.Processes > 0 {
		if err := limitable(); err != nil {
			return err
		}
	}
	if i.Sandbox {
		return sandboxable(i)
	}
	return nil
}

// exceeded says which limit the processes of a program exceed, or "".
func (i Isolation) exceeded(processes int, memory int64) string {
	switch {
	case i.Memory > 0 && memory > i.Memory:
		return fmt.Sprintf("its processes held %s of memory, and its limit is %s", megabytes(memory),
			megabytes(i.Memory))
	case i.Processes > 0 && processes > i.Processes:
		return fmt.Sprintf("it had %d processes, and its limit is %d", processes, i.Processes)
	}
	return ""
}

func megabytes(n int64) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
}

// hidden are the folders that are empty in a sandbox, so that nothing leads out of it: the
// sockets of other programs are there.
var hidden = []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// scratch is how many bytes fit into each of the hidden folders.
const scratch = 256 << 20

// statusFile is the descriptor at which bubblewrap tells what it has started.
const statusFile = 3

// wrap returns the command line of bubblewrap that runs a command in a sandbox.
func (i Isolation) wrap(bwrap, dir string, args []string) []string {
	line := []string{
		bwrap, "--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL", "--json-status-fd",
		strconv.Itoa(statusFile),
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
	}
	if i.Network {
		line = append(line, "--share-net")
	}
	for _, folder := range hidden {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() {
			line = append(line, "--size", strconv.Itoa(scratch), "--tmpfs", folder)
		}
	}
	// Parts of /run that programs need: names of hosts, and whole systems.
	for _, path := range []string{"/run/systemd/resolve", "/run/current-system"} {
		line = append(line, "--ro-bind-try", path, path)
	}
	for _, path := range append(paths(dir, args), i.Shown...) {
		line = append(line, "--ro-bind-try", path, path)
	}
	for _, path := range i.Writable {
		line = append(line, "--bind", path, path)
	}
	return append(append(line, "--chdir", dir, "--"), args...)
}

// paths returns the working directory and what the words of a command name, as far as that is in a
// hidden folder.
func paths(dir string, args []string) []string {
	var found []string
	show := func(path string) {
		for _, folder := range hidden {
			if below := strings.HasPrefix(path, folder+"/"); below && path != folder {
				found = append(found, path)
			}
		}
	}
	show(dir)
	for _, arg := range args {
		for _, word := range strings.FieldsFunc(arg,
			func(r rune) bool { return strings.ContainsRune(" \t\n=;'\"", r) }) {
			if _, err := os.Stat(word); err == nil && filepath.IsAbs(word) {
				show(filepath.Clean(word))
			}
		}
	}
	return found
}

// child reads what bubblewrap tells: the id of the first process in the sandbox, which leads a
// group of its own; 0 if there is none.
func child(status io.Reader) int {
	var started struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(io.LimitReader(status, 4<<10)).Decode(&started); err != nil {
		return 0
	}
	return started.PID
}
