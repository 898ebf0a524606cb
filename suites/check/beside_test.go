package check_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

// takes is how long the server of these tests takes over each request.
const takes = 100 * time.Millisecond

// thoughtful is a server that takes its time over each request, and serves them beside each other. A request ends it
// if deadly says so.
func thoughtful(deadly func(name string) bool) *check.Engine {
	e := engine(10 * time.Second)
	e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "thoughtful", Run: func(ctx context.Context, stdin io.Reader, stdout, _ io.Writer) error {
		ctx, stop := context.WithCancel(ctx)
		var under sync.WaitGroup
		defer under.Wait()
		defer stop()
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			raw := append([]byte(nil), lines.Bytes()...)
			name, _ := wire.At(wire.Parse(raw).Params, "name").(string)
			if deadly(name) {
				return errors.New("it was deadly")
			}
			answer := reticentAnswer(raw, `{"tools":{}}`, func(string) bool { return true })
			if name == "odd" {
				answer = strings.Replace(answer, `"result":{"tools":[]}`, `"error":{"code":-32603,"message":"odd"}`, 1)
			}
			under.Go(func() {
				select {
				case <-time.After(takes):
					_, _ = io.WriteString(stdout, answer+"\n")
				case <-ctx.Done():
				}
			})
		}
		return nil
	}}}
	return e
}

// varying tries the ids of the family at the server, with a name that is odd for one of them.
func varying(oddest, name string) *check.Check {
	return &check.Check{
		Name: "a/b", Requirements: []string{"a.b"}, Families: []string{"ids"},
		Body: func(t *check.T) {
			t.Vary(t.Draw("ids"), func(m family.Member) {
				params := map[string]any{"name": "fine"}
				if m.Is == oddest {
					params["name"] = name
				}
				t.Note("%s", m.Is)
				t.Check("a.b", t.Call("tools/call", params)).To(match.HaveResult(), "for %s", m)
			})
		},
	}
}

func harmless(string) bool { return false }

// Several members of a family are tried at a time, and what they show has the order of the
// family all the same.
func TestVaryBeside(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		e := thoughtful(harmless)
		if _, err := e.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		o := e.Start(t.Context(), []*check.Check{varying("", "")}, nil)[0].Await()
		members := family.Choice{}.Draw("ids", "a/b")
		if took := time.Since(began); took > time.Duration(len(members))*takes/2 {
			t.Errorf("%d members took %v", len(members), took)
		}
		if o.Verdict != check.Passed {
			t.Errorf("%v: %q %+v", o.Verdict, o.Reason, o.Record.Findings())
		}
		var names []string
		for _, m := range members {
			names = append(names, m.Is)
		}
		if notes := o.Record[o.Record.Keys()[0]].Notes; len(notes) == 0 || !strings.HasPrefix(strings.Join(names, "; "), strings.Join(notes, "; ")) {
			t.Errorf("the notes are %q", notes)
		}
		e.Finish(t.Context())
	})
}

// A finding is about the members that show it when they are tried alone, whatever else was
// under way before.
func TestVaryBlames(t *testing.T) {
	for name, deadly := range map[string]func(string) bool{
		"odd": harmless,
		"end": func(name string) bool { return name == "end" },
	} {
		virtual.Test(t, func(t *testing.T) {
			e := thoughtful(deadly)
			if _, err := e.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			o := e.Start(t.Context(), []*check.Check{varying("negative", name)}, nil)[0].Await()
			found := o.Record.Findings()
			if o.Verdict != check.Failed || len(found) != 1 || !strings.Contains(found[0].Message, "-1 (negative)") ||
				strings.Contains(found[0].Message, "the same shows") || !strings.Contains(found[0].Message, "is handled correctly") {
				t.Errorf("%s: %v: %q %+v", name, o.Verdict, o.Reason, found)
			}
			e.Finish(t.Context())
		})
	}
}
