package check_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// scripted is a server that answers initialize, and else as what begin returns
// for each connection says.
func scripted(capabilities string, begin func() (reply func(m *wire.Message) string)) *check.Engine {
	e := engine(silentTimeout)
	e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "scripted", Run: func(_ context.Context, stdin io.Reader, stdout, _ io.Writer) error {
		reply := begin()
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			raw := append([]byte(nil), lines.Bytes()...)
			answer := reticentAnswer(raw, capabilities, never)
			if answer == "" {
				answer = reply(wire.Parse(raw))
			}
			if answer != "" {
				_, _ = io.WriteString(stdout, answer+"\n")
			}
		}
		return nil
	}}}
	return e
}

func resultFor(id wire.ID, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// TestBehindTool tests a ping that waits for the end of a tool. It counts as unanswered only if the tool never ends,
// and only a check about answers reports that.
func TestBehindTool(t *testing.T) {
	for name, c := range map[string]struct {
		ends, liveness bool
		verdict        check.Verdict
	}{
		"it ends":                           {true, true, check.Inconclusive},
		"it never ends":                     {false, true, check.Failed},
		"it never ends, in another's check": {false, false, check.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			e := scripted(`{}`, func() func(m *wire.Message) string {
				var call wire.ID
				return func(m *wire.Message) string {
					switch {
					case m.Method == "tools/call":
						call = m.ID
					case m.Method == "notifications/cancelled" && c.ends: // of the ping, whose time is over
						return resultFor(call, `{"content":[]}`)
					case m.Method == "ping" && !call.Usable(): // in another process nothing is in its way
						return resultFor(m.ID, `{}`)
					}
					return ""
				}
			})
			if _, err := e.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			behind := &check.Check{
				Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Fresh, Liveness: c.liveness},
				Body: func(t *check.T) {
					t.Start("tools/call", map[string]any{"name": "x"})
					t.Fence()
				},
			}
			if o := e.Start(t.Context(), []*check.Check{behind}, nil)[0].Await(); o.Verdict != c.verdict {
				t.Errorf("%v: %q %+v", o.Verdict, o.Reason, o.Record.Findings())
			}
			e.Finish(t.Context())
			goleak.VerifyNone(t)
		})
	}
}

// A list that brings something new on each page is long; one that does not is
// endless.
func TestReadListWithoutEnd(t *testing.T) {
	for name, fresh := range map[string]bool{"new tools": true, "the same tools": false} {
		t.Run(name, func(t *testing.T) {
			e := scripted(`{}`, func() func(m *wire.Message) string {
				pages := 0
				return func(m *wire.Message) string {
					if m.Method != "tools/list" {
						return ""
					}
					pages++
					tool := 0
					if fresh {
						tool = pages
					}
					return resultFor(m.ID, fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, tool, pages))
				}
			})
			conn, err := e.Dialer.Dial(t.Context(), e.Trace.Connect("stdio", "test"))
			if err != nil {
				t.Fatal(err)
			}
			s := client.New(conn, client.Options{})
			if list := check.ReadList(t.Context(), s, "tools/list"); list.Long != fresh || list.Endless == fresh || list.Err != nil {
				t.Errorf("after %d pages long: %v, endless: %v, %v", len(list.Pages), list.Long, list.Endless, list.Err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTurnedAway tests a check that is inconclusive because a call was refused or failed beside other checks. It runs
// again alone: there may have been too many calls. A server may refuse a call that breaks a rule.
func TestTurnedAway(t *testing.T) {
	for name, c := range map[string]struct {
		answer     func(id wire.ID) string
		deliberate bool
		verdict    check.Verdict
	}{
		"refused": {func(id wire.ID) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"busy"}}`, id)
		}, false, check.Passed},
		"failed":           {func(id wire.ID) string { return resultFor(id, `{"content":[],"isError":true}`) }, false, check.Passed},
		"refused for good": {func(id wire.ID) string { return resultFor(id, `{"content":[],"isError":true}`) }, true, check.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			e := scripted(`{"tools":{}}`, func() func(m *wire.Message) string {
				return func(m *wire.Message) string {
					switch {
					case m.Method == "tools/list":
						return resultFor(m.ID, `{"tools":[]}`)
					case m.Method == "tools/call" && calls.Add(1) == 1:
						return c.answer(m.ID)
					case m.Kind == wire.Request:
						return resultFor(m.ID, `{"content":[]}`)
					}
					return ""
				}
			})
			if _, err := e.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			var options []client.Option
			if c.deliberate {
				options = append(options, client.Deliberately("*"))
			}
			o := e.Start(t.Context(), []*check.Check{{
				Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Own},
				Body: func(t *check.T) {
					if x := t.Call("tools/call", map[string]any{"name": "any"}, options...); x.Error() != nil || x.Result()["isError"] == true {
						t.Inconclusive("the tool does not work")
					}
				},
			}}, nil)[0].Await()
			e.Finish(t.Context())
			if o.Verdict != c.verdict {
				t.Errorf("%v, %q", o.Verdict, o.Reason)
			}
		})
	}
}
