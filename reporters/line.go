package reporters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// VerdictLine returns the verdict on a run in one line, with its numbers or the reason why it
// is incomplete.
func VerdictLine(run *result.Run) (string, error) {
	v, err := newView(run)
	if err != nil {
		return "", err
	}
	word, detail := v.verdictWords()
	return strings.ToUpper(word) + ": " + detail + v.decided() + ".", nil
}

// FleetLine returns the verdicts on several targets in one line: the worst, how many have
// which, and the first that is not conformant with the reason.
func FleetLine(members []Member) string {
	words := []string{"not conformant", "incomplete", "not tested", "conformant"}
	counts := make(map[string]int)
	first, rank := "", len(words)-1
	for _, m := range members {
		word := "not tested"
		if m.Run != nil {
			word = verdictName(m.Run.Verdict)
		}
		counts[word]++
		if n := slices.Index(words, word); n >= 0 && n < rank {
			rank, first = n, line(m.Name, limitName)+": "+m.Reason()
		}
	}
	var parts []string
	for _, word := range words {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	text := strings.ToUpper(words[rank]) + ": " + strings.Join(parts, ", ")
	if first != "" {
		text += "; " + strings.TrimRight(first, ".")
	}
	return text + "."
}

// RunsLine is FleetLine for results that are shown side by side.
func RunsLine(runs []*result.Run) (string, error) {
	if _, err := newMatrix(runs); err != nil {
		return "", err
	}
	return FleetLine(Members(runs)), nil
}

// Members returns runs that are shown side by side, with names that tell them apart.
func Members(runs []*result.Run) []Member {
	m, err := newMatrix(runs)
	if err != nil {
		return nil
	}
	members := make([]Member, len(runs))
	for i, run := range runs {
		members[i] = Member{Name: m.runName(i), Run: run}
	}
	return members
}
