package transport

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// stat is the beginning and the end of what /proc shows of a process.
func stat(startCode, envStart, envEnd string) []byte {
	text := "7 (a) b (c) R"
	for field := 4; field <= 52; field++ {
		value := "5"
		switch field {
		case 26:
			value = startCode
		case 50:
			value = envStart
		case 51:
			value = envEnd
		}
		text += " " + value
	}
	return []byte(text + "\n")
}

// A process that showed no environment is looked at again, unless it has none.
func TestUnsettled(t *testing.T) {
	for _, c := range []struct {
		name                        string
		startCode, envStart, envEnd string
		want                        bool
	}{
		{"nothing is set yet", "0", "0", "0", true},
		{"the environment is being counted", "0", "900", "900", true},
		{"the environment has come since", "100", "900", "950", true},
		{"none was given", "100", "900", "900", false},
	} {
		if got := unsettled(stat(c.startCode, c.envStart, c.envEnd)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
	if own, err := os.ReadFile("/proc/self/stat"); err != nil || !unsettled(own) {
		t.Errorf("our own environment does not show: %v: %s", err, own)
	}
}

// A look tells what there was of a marked process: it runs and is killed, or it is gone.
func TestScan(t *testing.T) {
	older := allPIDs()
	variable := fmt.Sprintf("MCPCONFORM_TEST_SCAN=%d", os.Getpid())
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), variable)
	if err := cmd.Start(); err != nil {
		t.Skip("this system has no sleep: ", err)
	}
	killMarked(variable, older)
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v", cmd.ProcessState)
	}
	s := scan{variable: variable, older: older, killed: make(map[int]bool)}
	s.look()
	if s.found {
		t.Error("a process that has ended is found")
	}
}
