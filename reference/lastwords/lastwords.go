// Package lastwords finds, in what a process wrote before it died, the lines that
// say why: runtimes write them amid stack traces and advice.
package lastwords

import (
	"regexp"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// saying is how a runtime or tool says why it ended.
type saying struct {
	line *regexp.Regexp
	// next, unless nil, is what the following line is if it belongs to the saying.
	next *regexp.Regexp
}

// sayings are what decides, wherever it stands; the last one counts.
var sayings = []saying{
	// Python, within the frame of an exception group also, and Node.js.
	{line: regexp.MustCompile(
		`^(?:[ |]+\| )?(?:Uncaught )?(?:\w+\.)*\w*(?:Error|Exception|ExceptionGroup)(?: \[\w+\])?: \S`)},
	{line: regexp.MustCompile(`^\w+(?:Error|Exception)$`)},
	// Go.
	{line: regexp.MustCompile(`^(?:panic|fatal error): \S`)},
	// Java, and .NET.
	{line: regexp.MustCompile(`^(?:Exception in thread "|Caused by: |Unhandled exception\. )\S`)},
	// Rust, which today says what happened in the line after the place.
	{line: regexp.MustCompile(`^thread '.*' panicked at '`)},
	{
		line: regexp.MustCompile(`^thread '.*' (?:\(\d+\) )?panicked at \S+:$`),
		next: regexp.MustCompile(`\S`),
	},
	// Ruby, and PHP.
	{line: regexp.MustCompile(`\((?:\w+::)*\w*Error\)$`)},
	{line: regexp.MustCompile(`^PHP (?:Fatal|Parse) error: `)},
	// Shells.
	{line: regexp.MustCompile(`^\S*sh: .*(?:not found|[Pp]ermission denied|No such file or directory)$`)},
	// Tools that end with advice how to call them.
	{line: regexp.MustCompile(`^(?:docker|error|fatal): \S`)},
	// uv.
	{line: regexp.MustCompile(`^ *× \S`), next: regexp.MustCompile(`^ *╰─▶ `)},
}

// npm repeats that what it ran has failed: it decides only where nothing else does.
// The line with the cause follows after some with the code and the system call.
var (
	npm       = saying{line: regexp.MustCompile(`^npm (?:error|ERR!) \S`)}
	npmDetail = regexp.MustCompile(`^npm (?:error|ERR!) (?:code|syscall|path|errno|dest|A complete log)\b`)
)

// Find returns the lines that say why a process died, and whether they are known to:
// otherwise they are the last lines that are not empty, at most three.
func Find(output string) (lines []string, known bool) {
	all := strings.Split(strings.ReplaceAll(output, "\r\n", "\n"), "\n")
	for i := len(all) - 1; i >= 0; i-- {
		for _, s := range sayings {
			if s.line.MatchString(all[i]) {
				return s.at(all, i), true
			}
		}
	}
	for i, line := range all {
		if npm.line.MatchString(line) && !npmDetail.MatchString(line) {
			return npm.at(all, i), true
		}
	}
	return last(all, 3), false
}

// at returns the saying that begins with a line.
func (s saying) at(all []string, i int) []string {
	lines := []string{strings.TrimLeft(all[i], " |")}
	if s.next != nil && i+1 < len(all) && s.next.MatchString(all[i+1]) {
		lines = append(lines, strings.TrimSpace(all[i+1]))
	}
	return lines
}

func last(all []string, n int) []string {
	var lines []string
	for i := len(all) - 1; i >= 0 && len(lines) < n; i-- {
		if line := strings.TrimSpace(all[i]); line != "" {
			lines = append([]string{line}, lines...)
		}
	}
	return lines
}

// longest is how many characters of a line are quoted.
const longest = 200

// Quote returns lines as one, each in quotation marks and cut if it is long.
func Quote(lines []string) string {
	quoted := make([]string, 0, len(lines))
	for _, line := range lines {
		quoted = append(quoted, wire.Quote(line, longest))
	}
	return strings.Join(quoted, ", ")
}
