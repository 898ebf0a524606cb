package judge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// A transcript is a conversation with what the rules are to say about it. The
// files in testdata/conversations hold many; README.md there explains them.
type transcript struct {
	name   string
	meets  []string // "id party" that must be exercised and not broken
	leaves []string // "id party" of which nothing may be said
	// breaks and warns hold all "id party" that are broken and why there are no others.
	breaks, warns []string
	log           *wire.Log
	at            string
}

func transcripts(t *testing.T, file string) []*transcript {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*transcript
	for i, line := range strings.Split(string(data), "\n") {
		switch name, ok := strings.CutPrefix(line, "-- "); {
		case ok:
			tr := &transcript{name: strings.TrimSuffix(name, " --")}
			tr.log = wire.NewTrace(wire.DefaultLimits).Connect("stdio", tr.name)
			all = append(all, tr)
		case line == "", strings.HasPrefix(line, "#"), len(all) == 0:
		default:
			if err := all[len(all)-1].read(line); err != nil {
				t.Fatalf("%s:%d: %v", file, i+1, err)
			}
		}
	}
	for _, tr := range all {
		tr.log.End()
	}
	return all
}

var defaults = map[wire.Party]string{
	wire.Client: `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`,
	wire.Server: `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}}`,
}

func (tr *transcript) read(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	party := wire.Client
	if strings.HasPrefix(verb, "S") || strings.HasPrefix(verb, "s") {
		party = wire.Server
	}
	words := strings.SplitN(rest, " ", 3)
	for len(words) < 3 {
		words = append(words, "")
	}
	optional := func(name, value string) string {
		if value == "" {
			return ""
		}
		return `,"` + name + `":` + value
	}
	switch verb {
	case "+":
		tr.meets = append(tr.meets, rest)
	case "-":
		tr.leaves = append(tr.leaves, rest)
	case "!":
		tr.breaks = append(tr.breaks, rest)
	case "~":
		tr.warns = append(tr.warns, rest)
	case "transport":
		tr.log.Transport = rest
	case "handshake":
		for p, caps := range map[wire.Party]*string{wire.Server: &words[0], wire.Client: &words[1]} {
			if *caps == "" {
				*caps = defaults[p]
			}
		}
		return firstError(
			tr.message(wire.Client, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":`+words[1]+`,"clientInfo":{"name":"c","version":"1"}}}`),
			tr.message(wire.Server, `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":`+words[0]+`,"serverInfo":{"name":"s","version":"1"}}}`),
			tr.message(wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`),
		)
	case "C:", "S:":
		return tr.message(party, rest)
	case `Cq:`, `Sq:`:
		raw, err := strconv.Unquote(rest)
		return firstError(err, tr.message(party, raw))
	case "S.": // without its newline
		return tr.add(wire.Event{Kind: wire.KindMessage, From: party, Stream: "stdout", Raw: []byte(rest), Note: "the output ended without a newline"})
	case "S|": // the same, as its process was ended
		return tr.add(wire.Event{Kind: wire.KindMessage, From: party, Stream: "stdout", Raw: []byte(rest), Note: "the output ended without a newline, as mcpconform ended the process or stopped reading"})
	case "S…": // cut off by a limit
		return tr.add(wire.Event{Kind: wire.KindMessage, From: party, Stream: "stdout", Raw: []byte(rest), Dropped: 100})
	case "C*": // broken on purpose: the requirement, then the message
		id, raw, _ := strings.Cut(rest, " ")
		return tr.add(wire.Event{Kind: wire.KindMessage, From: party, Stream: "stdin", Raw: []byte(raw), Deliberate: []string{id}})
	case "c?", "s?":
		return tr.message(party, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, words[0], words[1], optional("params", words[2])))
	case "c=", "s=":
		return tr.message(party, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, words[0], strings.TrimSpace(words[1]+" "+words[2])))
	case "c-", "s-":
		return tr.message(party, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%q}}`, words[0], words[1], words[2]))
	case "c!", "s!":
		return tr.message(party, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, words[0], optional("params", strings.TrimSpace(words[1]+" "+words[2]))))
	case "close":
		return tr.add(wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: "stdin"})
	case "signal":
		return tr.add(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: rest})
	case "exit":
		return tr.add(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{}})
	case "stderr":
		return tr.add(wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: "stderr", Raw: []byte(rest)})
	case "timeout":
		return tr.add(wire.Event{Kind: wire.KindTimeout, From: wire.Server, Note: rest})
	case "status":
		status, err := strconv.Atoi(rest)
		return firstError(err, tr.add(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: "stdout", HTTP: &wire.Head{Status: status}}))
	case "at": // from here on, seconds
		tr.at = rest
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (tr *transcript) message(p wire.Party, raw string) error {
	stream := map[wire.Party]string{wire.Client: "stdin", wire.Server: "stdout"}[p]
	return tr.add(wire.Event{Kind: wire.KindMessage, From: p, Stream: stream, Raw: []byte(raw)})
}

func (tr *transcript) add(e wire.Event) error {
	stored, err := tr.log.Append(e)
	if err == nil {
		var at float64
		if tr.at != "" {
			at, err = strconv.ParseFloat(tr.at, 64)
		}
		stored.At = time.Duration(at * float64(time.Second))
	}
	return err
}

// found lists the "id party" that a report has findings for.
func found(r judge.Report, warnOnly bool) []string {
	var list []string
	for k, seen := range r {
		if slices.ContainsFunc(seen.Findings, func(v ledger.Finding) bool { return v.WarnOnly == warnOnly }) {
			list = append(list, k.Requirement+" "+string(k.Party))
		}
	}
	slices.Sort(list)
	return list
}

func files(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/conversations/*.txt")
	if err != nil || len(list) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	return list
}

func TestConversations(t *testing.T) {
	for _, file := range files(t) {
		for _, tr := range transcripts(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+tr.name, func(t *testing.T) {
				report := judge.Judge(schema.Default(), []*wire.Log{tr.log}, judge.Options{})
				for _, c := range []struct {
					what     string
					want     []string
					warnOnly bool
				}{{"broken", tr.breaks, false}, {"warned about", tr.warns, true}} {
					slices.Sort(c.want)
					if diff := cmp.Diff(c.want, found(report, c.warnOnly)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", c.what, diff)
					}
				}
				for _, m := range tr.meets {
					id, party, _ := strings.Cut(m, " ")
					seen := report[judge.Key{Requirement: id, Party: wire.Party(party)}]
					if seen == nil || seen.Exercised == 0 {
						t.Errorf("%s is not exercised", m)
					} else if len(seen.Findings) > 0 {
						t.Errorf("%s is broken: %s", m, seen.Findings[0].Message)
					}
				}
				for _, m := range tr.leaves {
					id, party, _ := strings.Cut(m, " ")
					if seen := report[judge.Key{Requirement: id, Party: wire.Party(party)}]; seen != nil && seen.Exercised > 0 {
						t.Errorf("%s is exercised", m)
					}
				}
				for k, seen := range report {
					for _, v := range seen.Findings {
						if v.Source == "" || v.Message == "" || len(v.Evidence) == 0 || slices.Contains(v.Evidence, nil) {
							t.Errorf("%s: violation %+v", k.Requirement, v)
						}
						if !slices.IsSortedFunc(v.Evidence, func(a, b *wire.Event) int { return a.Seq - b.Seq }) {
							t.Errorf("%s: the evidence of %q is not in its order", k.Requirement, v.Message)
						}
					}
				}
			})
		}
	}
}

// TestRulesReportWhatTheyDeclare tests that a rule declares every requirement on which it reports. Otherwise reports
// name no rule for it.
func TestRulesReportWhatTheyDeclare(t *testing.T) {
	for _, file := range files(t) {
		for _, tr := range transcripts(t, file) {
			for _, r := range judge.Rules(schema.Default()) {
				for k := range judge.JudgeRule(r, tr.log) {
					if !slices.Contains(r.Requirements, k.Requirement) {
						t.Errorf("rule %q reports on %s without declaring it", r.Name, k.Requirement)
					}
				}
			}
		}
	}
}

func TestRules(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range judge.Rules(schema.Default()) {
		if names[r.Name] || r.Name == "" || len(r.Requirements) == 0 {
			t.Errorf("rule %q: its name is not its own, or it has no requirements", r.Name)
		}
		names[r.Name] = true
		for i, id := range r.Requirements {
			_, ok := schema.Default().Lookup(id)
			switch {
			case !ok:
				t.Errorf("rule %q: the catalogue has no %s", r.Name, id)
			case slices.Contains(r.Requirements[:i], id):
				t.Errorf("rule %q names %s twice", r.Name, id)
			}
		}
	}
}

// neverBroken are requirements that the rules only see met: how they are
// broken shows to a check, or in another requirement.
var neverBroken = map[string]string{
	"lifecycle.init.answered":     "the check of the handshake",
	"stdio.server.stderr-logging": "a permission",
}

// Each requirement of the rules whose transcripts are here is met in one and
// broken in another.
func TestConversationsCoverTheRules(t *testing.T) {
	met, broken := make(map[string]bool), make(map[string]bool)
	for _, file := range files(t) {
		for _, tr := range transcripts(t, file) {
			report := judge.Judge(schema.Default(), []*wire.Log{tr.log}, judge.Options{})
			for k, seen := range report {
				met[k.Requirement] = met[k.Requirement] || seen.Exercised > 0 && len(seen.Findings) == 0
				broken[k.Requirement] = broken[k.Requirement] || len(seen.Findings) > 0
			}
		}
	}
	for _, rules := range judge.Slices() {
		for _, r := range rules {
			for _, id := range r.Requirements {
				if !met[id] {
					t.Errorf("rule %q: no transcript meets %s", r.Name, id)
				}
				q, _ := schema.Default().Lookup(id)
				switch reason := neverBroken[id]; {
				case reason == "" && !broken[id] && q.Through == nil:
					t.Errorf("rule %q: no transcript breaks %s", r.Name, id)
				case reason != "" && broken[id]:
					t.Errorf("rule %q: %s is broken, although it never is: %s", r.Name, id, reason)
				}
			}
		}
	}
}
