package leftover

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

func TestProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell")
	}
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), "MCPCONFORM_TEST_LEFT=this-one")
	if err := cmd.Start(); err != nil {
		t.Skip("this system has no sleep: ", err)
	}
	ended := make(chan error)
	for len(processes("this-one")) == 0 { // until its environment is its own
		runtime.Gosched()
	}
	if found := processes("this-one"); len(found) != 1 || found[0] != cmd.Process.Pid {
		t.Errorf("%v were found, not %d", found, cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	go func() { ended <- cmd.Wait() }()
	Await(t, "this-one")
	<-ended
}

func TestDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell")
	}
	before := Descriptors()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if after := Descriptors(); after != before+1 {
		t.Errorf("%d are open, and %d before", after, before)
	}
}
