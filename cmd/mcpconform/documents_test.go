package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

var update = flag.Bool("update", false, "write what the commands print into the documents that show it")

// documents whose files are written and whose commands are run, in their order and in a folder of
// their own. Blocks with a name behind the language are files, or changes of one if the language is diff.
// Blocks of the language console have commands, behind "$ ", and below each what it prints: on
// standard output, or on standard error if there is nothing else. A line [...] stands for lines
// that are not shown; a command that ends with & serves at port 8080 until its block ends.
var documents = []struct {
	name string
	// needs says what it takes besides mcpconform and a shell; fixtures/targets pins it.
	needs string
}{
	{name: "troubleshooting.md"},
	{name: "tutorial-typescript.md", needs: "the TypeScript SDK"},
	{name: "tutorial-python.md", needs: "the Python SDK"},
	{name: "tutorial-go.md", needs: "the Go SDK"},
}

// standIns are run in place of the commands that begin so and would fetch something.
var standIns = []struct{ prefix, command string }{
	{"go install ./cmd/mcpconform", `true`},
	{"npm install ", `ln -s "$TARGETS/npm/node_modules" node_modules`},
	{"python3 -m venv .venv", `ln -s "$TARGETS/python-2" .venv`},
	{".venv/bin/pip install ", `true`},
	{"go mod init ", `sed -e "s#=> ../../..#=> $REPO#" -e "s#^module .*#module example.com/weather#" "$REPO/fixtures/targets/go-test/go.mod" > go.mod && cp "$REPO/fixtures/targets/go-test/go.sum" .`},
	{"go mod edit -replace ", `true`},
	{"go get ", `true`},
}

func TestDocuments(t *testing.T) {
	manyRuns(t)
	if runtime.GOOS == "windows" {
		t.Skip("left out: the commands of the documents need a POSIX shell")
	}
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			if d.needs != "" && (os.Getenv("MCPCONFORM_INTEROP") == "" || testing.Short()) {
				t.Skipf("left out: a document that needs %s; run `go run ./.ci/targets install` and set MCPCONFORM_INTEROP=1, without -short", d.needs)
			}
			file := filepath.Join("..", "..", "docs", d.name)
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(source), "\n")
			var now []string // the document with what the commands print now
			done, commands := 0, 0
			r := newDocumentReader(t)
			for _, b := range fencedBlocks(lines) {
				body := lines[b.from:b.to]
				switch {
				case b.language == "diff":
					r.change(b.name, body)
				case b.language != "console":
					r.write(b.name, body)
				default:
					for _, c := range documentCommands(body) {
						commands++
						output := r.run(c.line)
						if problem := differs(c.output, output); problem != "" && !*update {
							t.Errorf("line %d: %s: %s; it prints now, which -update writes:\n%s", b.from+c.at+1, c.line, problem, strings.Join(output, "\n"))
						} else if problem != "" {
							now = append(append(now, lines[done:b.from+c.at+1]...), shorten(output, c.output)...)
							done = b.from + c.at + 1 + len(c.output)
						}
					}
					r.stop()
				}
			}
			if commands == 0 {
				t.Error("it has no commands")
			}
			if done > 0 {
				if err := os.WriteFile(file, []byte(strings.Join(append(now, lines[done:]...), "\n")), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// fencedBlock is a block of code: its lines are those from one number to before another one.
type fencedBlock struct {
	language, name string
	from, to       int
}

func fencedBlocks(lines []string) []fencedBlock {
	var all []fencedBlock
	open := false
	for i, line := range lines {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case !fence:
		case open:
			open, all[len(all)-1].to = false, i
		default:
			language, name, _ := strings.Cut(info, " ")
			open, all = true, append(all, fencedBlock{language: language, name: name, from: i + 1})
		}
	}
	return all
}

// documentCommand is a command at a line of its block, with what is shown below it.
type documentCommand struct {
	line   string
	at     int
	output []string
}

func documentCommands(block []string) []documentCommand {
	var all []documentCommand
	for i, line := range block {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, documentCommand{line: command, at: i})
		} else if len(all) > 0 {
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
	}
	return all
}

// cutMark stands for lines that are not shown.
const cutMark = "[...]"

// shownParts returns the parts of an output between the cuts.
func shownParts(output []string) [][]string {
	parts := [][]string{nil}
	for _, line := range output {
		if line == cutMark {
			parts = append(parts, nil)
		} else {
			parts[len(parts)-1] = append(parts[len(parts)-1], line)
		}
	}
	return parts
}

// These parts differ between two runs, or between two versions of the catalogue. Each has a substitute.
var volatile = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`(?m)(→|←) .*$`), "$1"}, // messages: their ids, and where they are shortened
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)? ?(ms|s)\b`), "TIME"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":PORT"},
	{regexp.MustCompile(`mcpconform (\(devel\)|v\d[^ ]*)`), "mcpconform VERSION"},
	{regexp.MustCompile(`\b\d+ (untested|not used|passed|not applicable|requirements|more)\b`), "N $1"},
	{regexp.MustCompile(`\((\d+) (apply|times)`), "(N $2"},
	{regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d`), "DATE"},
	{regexp.MustCompile(`\s+`), " "}, // where lines break depends on all the others
}

func settled(lines []string) string {
	text := strings.Join(lines, "\n")
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.stands)
	}
	return strings.TrimSpace(text)
}

// differs says in what the output of a command is not what is shown, or returns "".
func differs(shown, output []string) string {
	rest := settled(output)
	parts := shownParts(shown)
	for i, part := range parts {
		want := settled(part)
		at := strings.Index(rest, want)
		switch {
		case at < 0:
			return fmt.Sprintf("it does not print %q", want)
		case at > 0 && i == 0:
			return fmt.Sprintf("it prints %q first", rest[:at])
		}
		rest = strings.TrimSpace(rest[at+len(want):])
	}
	if last := parts[len(parts)-1]; rest != "" && (len(last) > 0 || len(parts) == 1) {
		return fmt.Sprintf("it also prints %q", rest)
	}
	return ""
}

// label is what a line begins with that goes on below the next ones: "  To do        Send …".
var label = regexp.MustCompile(`^ *\S+( \S+)*  +`)

// shorten cuts an output at the cuts of the shown one. A part reaches from its first line to its last, or has the
// same number of labelled lines. If the first line is gone, or nothing was shown, nothing is cut.
func shorten(output, shown []string) []string {
	if len(shown) == 0 {
		return output
	}
	find := func(from int, line string) int {
		begins := label.FindString(line)
		found := -1
		for i := from; i < len(output); i++ {
			if settled(output[i:i+1]) == settled([]string{line}) {
				return i
			}
			if found < 0 && begins != "" && strings.HasPrefix(output[i], begins) {
				found = i
			}
		}
		return found
	}
	labelled := func(lines []string) (n int) {
		for _, line := range lines {
			if label.MatchString(line) {
				n++
			}
		}
		return n
	}
	var short []string
	at := 0
	parts := shownParts(shown)
	for i, part := range parts {
		if i > 0 {
			short = append(short, cutMark)
		}
		if len(part) == 0 {
			continue
		}
		from := find(at, part[0])
		if from < 0 || from > 0 && i == 0 {
			return output
		}
		to := find(from, part[len(part)-1])
		if i == len(parts)-1 {
			to = len(output) - 1
		} else if to < 0 {
			n := labelled(part)
			for to = from; to+1 < len(output) && output[to+1] != "" && labelled(output[from:to+2]) <= n; {
				to++
			}
		}
		short = append(short, output[from:to+1]...)
		at = to + 1
	}
	return short
}

// documentReader does what a document says.
type documentReader struct {
	*testing.T
	dir     string
	env     []string
	port    string
	code    int // of the last command
	serving []func()
}

func newDocumentReader(t *testing.T) *documentReader {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	targets := os.Getenv("MCPCONFORM_TARGETS")
	if cache, err := os.UserCacheDir(); targets == "" && err == nil {
		targets = filepath.Join(cache, "mcpconform", "targets")
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asCommand, program)
	if err := os.WriteFile(filepath.Join(bin, "mcpconform"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	port, err := transport.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r := &documentReader{T: t, dir: t.TempDir(), port: strconv.Itoa(port)}
	r.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TARGETS="+targets, "REPO="+repo, "NO_COLOR=1")
	t.Cleanup(r.stop)
	return r
}

func (r *documentReader) write(name string, lines []string) {
	r.Helper()
	if name == "" {
		return // an example for reading
	}
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		r.Fatal(err)
	}
}

// change replaces the lines of a file that a diff shows as they were.
func (r *documentReader) change(name string, diff []string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	var before, after strings.Builder
	for _, line := range diff {
		if line == "" {
			line = " "
		}
		if line[0] != '+' {
			before.WriteString(line[1:] + "\n")
		}
		if line[0] != '-' {
			after.WriteString(line[1:] + "\n")
		}
	}
	if n := strings.Count(string(text), before.String()); n != 1 {
		r.Fatalf("%s has %d times what a diff changes:\n%s", name, n, before.String())
	}
	r.write(name, []string{strings.TrimSuffix(strings.Replace(string(text), before.String(), after.String(), 1), "\n")})
}

// run returns the lines that a command prints.
func (r *documentReader) run(line string) []string {
	r.Helper()
	for _, s := range standIns {
		if strings.HasPrefix(line, s.prefix) {
			line = s.command
		}
	}
	line, serves := strings.CutSuffix(strings.ReplaceAll(line, ":8080", ":"+r.port), " &")
	if serves {
		line = "exec " + line
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Minute) // for a run that hangs
	cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("(exit %d)\n%s", r.code, line))
	cmd.Dir, cmd.Env = r.dir, r.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if serves {
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			r.Fatal(err)
		}
		r.serving = append(r.serving, func() { cancel(); _ = cmd.Wait() })
		for {
			if conn, err := net.Dial("tcp", "127.0.0.1:"+r.port); err == nil {
				conn.Close()
				return nil
			} else if ctx.Err() != nil {
				r.Fatalf("%s: %v", line, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	defer cancel()
	_ = cmd.Run() // the exit code tells
	r.code = cmd.ProcessState.ExitCode()
	if r.code < 0 {
		r.Fatalf("%s does not end; it printed\n%s%s", line, stdout.String(), stderr.String())
	}
	out := stdout.String()
	if out == "" {
		out = stderr.String()
	}
	out = strings.ReplaceAll(strings.TrimSuffix(out, "\n"), ":"+r.port, ":8080")
	if out == "" {
		return nil
	}
	// What go downloads depends on what it has.
	return slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
}

// stop ends what serves in the background.
func (r *documentReader) stop() {
	for _, stop := range r.serving {
		stop()
	}
	r.serving = nil
}

// The glossary has every verdict, level and basis.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, v := range []result.Verdict{result.Pass, result.Skip, result.Inconclusive, result.Warn, result.Fail, result.Error} {
		terms = append(terms, string(v))
	}
	for _, v := range []result.Overall{result.Conformant, result.NotConformant, result.Incomplete} {
		terms = append(terms, strings.ReplaceAll(string(v), "-", " "))
	}
	catalogue := schema.Default().Catalogue()
	for _, r := range catalogue {
		terms = append(terms, string(r.Level), string(r.Basis))
	}
	slices.Sort(terms)
	for _, term := range slices.Compact(terms) {
		if !strings.Contains(string(text), "**"+term+"**") {
			t.Errorf("the glossary does not have %q", term)
		}
	}
}

// Each test that the threat model names exists.
func TestThreats(t *testing.T) {
	page, err := os.ReadFile("../../docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	if err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(source, -1) {
			declared[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 50 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !declared[string(m[1])] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && !strings.Contains(line, "---") && !strings.Contains(cells[4], "tests") && !namesTests.MatchString(cells[4]) {
			t.Errorf("no test stands for %s", line)
		}
	}
}

// namesTests is a cell that names tests.
var namesTests = regexp.MustCompile("`(Test|Fuzz)")

func TestDiffers(t *testing.T) {
	output := strings.Split("mcpconform (devel)\n\nFAIL x\n  Sent  → {\"id\":1}\n  Found a, not\n        -32602\n\n1 failed (374 requirements, 1.2 s)", "\n")
	for _, c := range []struct {
		shown string
		same  bool
	}{
		{strings.Join(output, "\n"), true},
		{"mcpconform v1.2.3\n[...]\n1 failed (375 requirements, 31 s)", true},
		{"[...]\nFAIL x\n  Sent  → {\"id\":19}\n  Found a, not -32602\n[...]", true},
		{"[...]\nFAIL x\n[...]\n  Found a, not -32603\n[...]", false},
		{"[...]\n2 failed (374 requirements, 1.2 s)", false},
		{"FAIL x\n[...]", false},
		{"[...]\nFAIL x", false},
		{"[...]\n  Found a, not\n[...]\nFAIL x\n[...]", false},
		{"", false},
	} {
		shown := strings.Split(c.shown, "\n")
		if problem := differs(shown, output); (problem == "") != c.same {
			t.Errorf("%q: %q", c.shown, problem)
		}
		if problem := differs(shorten(output, shown), output); problem != "" {
			t.Errorf("%q is shortened wrongly: %s", c.shown, problem)
		}
	}
}
