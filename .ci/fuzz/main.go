// Command fuzz runs every fuzz target of this module for some time, and counts the inputs.
//
//	go run ./.ci/fuzz -time 1m
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", 2*time.Second, "how long each target runs")
	only := flag.String("run", "", "run only targets whose name matches the pattern")
	flag.Parse()
	if err := run(os.Stdout, *each, *only); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// target is a function FuzzX of a package.
type target struct{ pkg, dir, name string }

// run fuzzes all targets, also when one has failed.
func run(w io.Writer, each time.Duration, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	listed, err := exec.Command("go", "list", "-f",
		`{{.ImportPath}}{{range .TestGoFiles}} {{$.Dir}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$.Dir}}/{{.}}{{end}}`,
		"./...").Output()
	if err != nil {
		return fmt.Errorf("list the packages: %w", err)
	}
	targets, err := find(string(listed))
	if err != nil {
		return err
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("ask for the cache of Go: %w", err)
	}
	dir, err := os.MkdirTemp("", "fuzz-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := fuzzer{binary: filepath.Join(dir, "fuzz.test"), cache: strings.TrimSpace(string(cache)), each: each}
	var total int64
	var failed []string
	for _, t := range targets {
		if !wanted.MatchString(t.name) {
			continue
		}
		began := time.Now()
		if err := f.build(t); err != nil {
			return err
		}
		out, err := f.try(t)
		inputs := count(string(out))
		total += inputs
		fmt.Fprintf(w, "%-16s %-48s %9d inputs %7s\n", t.name, t.pkg, inputs,
			time.Since(began).Round(100*time.Millisecond))
		if err != nil && !late(out) {
			failed = append(failed, t.name)
			fmt.Fprintf(w, "%s\n", out)
		}
	}
	fmt.Fprintf(w, "%d inputs\n", total)
	if total == 0 {
		return errors.New("no input was tried")
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s failed; the input is in testdata/fuzz of the package: mend the cause and keep "+
			"it as a test",
			strings.Join(failed, ", "))
	}
	return nil
}

// fuzzer tries the targets of one package at a time.
type fuzzer struct {
	binary string // the tests of the package
	built  string // the package
	cache  string // the folder of Go's build cache
	each   time.Duration
}

// build builds the tests of the package of a target, unless they are there.
func (f *fuzzer) build(t target) error {
	if f.built == t.pkg {
		return nil
	}
	if out, err := exec.Command("go", "test", "-c", "-fuzz", ".", "-o", f.binary, t.pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", t.pkg, err, out)
	}
	f.built = t.pkg
	return nil
}

// try tries a target for a while and returns what it prints.
func (f *fuzzer) try(t target) ([]byte, error) {
	cmd := exec.Command(f.binary, "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", f.each.String(),
		"-test.fuzzminimizetime", "10x", "-test.fuzzcachedir", filepath.Join(f.cache, "fuzz", t.pkg))
	cmd.Dir = t.dir // where testdata is
	return cmd.CombinedOutput()
}

var function = regexp.MustCompile(`^func (Fuzz\w+)\(f \*testing\.F\)`)

// late reports whether go test failed for no other reason than that its time was over before all
// seeds were tried, and no input is to blame (https://go.dev/issue/48591).
func late(out []byte) bool {
	return bytes.Contains(out, []byte("context deadline exceeded")) &&
		!bytes.Contains(out, []byte("Failing input written to")) && !bytes.Contains(out, []byte("seed corpus entry"))
}

// find reads the test files of packages: a line each, the import path and then the files.
func find(listed string) ([]target, error) {
	var found []target
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		for _, path := range words[1:] {
			file, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			for lines := bufio.NewScanner(file); lines.Scan(); {
				if m := function.FindStringSubmatch(lines.Text()); m != nil {
					found = append(found, target{words[0], filepath.Dir(path), m[1]})
				}
			}
			if err := file.Close(); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

var execs = regexp.MustCompile(`execs: (\d+)`)

// count returns how many inputs the last line of the output that says so tells.
func count(output string) int64 {
	all := execs.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(all[len(all)-1][1], 10, 64)
	return n
}
