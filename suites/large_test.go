package suites_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// callsOf counts the calls of tools by their names.
type callsOf struct {
	mu    sync.Mutex
	names map[string]int
}

// tool makes a tool that notes its calls and returns a result.
func (c *callsOf) tool(name string, definition, result map[string]any) *server.Tool {
	definition["name"] = name
	if definition["inputSchema"] == nil {
		definition["inputSchema"] = map[string]any{"type": "object"}
	}
	return &server.Tool{Definition: definition, Call: func(context.Context, *server.Request, map[string]any) (any, *wire.Error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.names == nil {
			c.names = make(map[string]int)
		}
		c.names[name]++
		return result, nil
	}}
}

func said(text string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}

// whole runs all suites with defaults, but for what may be called.
func whole(t *testing.T, over string, o server.Options, mode check.CallMode) *result.Run {
	t.Helper()
	return selecting(t, over, o, mode)
}

// selecting is whole with nothing but what is needed for some requirements, unless there are none.
func selecting(t *testing.T, over string, o server.Options, mode check.CallMode, requirements ...string) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		dialer, stop, err := serve(t.Context(), over, o)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if run, _, err = suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: mode}}, suites.Options{Selection: suites.Selection{Select: requirements}}); err != nil {
			t.Fatal(err)
		}
	})
	for _, h := range run.Harness {
		t.Errorf("mcpconform itself: %s", h.Message)
	}
	return run
}

// Tools that may do harm are not called unless the user says so, whatever they
// are named and however they are annotated.
func TestNothingIsDeleted(t *testing.T) {
	brief.WholeRuns(t)
	calls := new(callsOf)
	annotated := func(annotations any) map[string]any { return map[string]any{"annotations": annotations} }
	catalogue := &server.Catalogue{Tools: []*server.Tool{
		calls.tool("delete_everything", map[string]any{}, said("gone")),
		calls.tool("delete_files", annotated(map[string]any{"destructiveHint": true}), said("gone")),
		calls.tool("remove", annotated(map[string]any{"readOnlyHint": false, "idempotentHint": true}), said("gone")),
		// Only readOnlyHint: true promises anything.
		calls.tool("drop_table", annotated(map[string]any{"destructiveHint": false, "openWorldHint": false, "title": "readOnlyHint: true"}), said("gone")),
		// Names by which checks guess what a tool is for, and names of known fixtures.
		calls.tool("sample_and_delete", map[string]any{}, said("gone")),
		calls.tool("elicit", map[string]any{}, said("gone")),
		calls.tool("slow_progress", map[string]any{}, said("gone")),
		calls.tool("roots_ping_link", map[string]any{}, said("gone")),
		calls.tool("test_simple_text", map[string]any{}, said("gone")),
		calls.tool("echo", map[string]any{}, said("gone")),
	}}
	for _, over := range transports {
		run := whole(t, over, server.Options{Catalogue: catalogue}, check.CallSafe)
		if run.Verdict != result.Conformant {
			t.Errorf("over %s the run is %s %s: %s", over, run.Verdict, run.Reason, faulted(run))
		}
	}
	if diff := cmp.Diff(map[string]int(nil), calls.names); diff != "" {
		t.Errorf("tools were called: %s", diff)
	}
	// The control: they can be called, and are when the user says so.
	whole(t, transport.NameStdio, server.Options{Catalogue: catalogue}, check.CallAll)
	for _, tool := range catalogue.Tools {
		if calls.names[tool.Name()] == 0 {
			t.Errorf("%s was not called although everything may be", tool.Name())
		}
	}
}

// faulted lists what a run found fault with.
func faulted(run *result.Run) string {
	var b strings.Builder
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
			fmt.Fprintf(&b, "\n%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
		}
	}
	return b.String()
}

func verdictOn(t *testing.T, run *result.Run, id string) result.Requirement {
	t.Helper()
	for _, q := range run.Requirements {
		if q.ID == id {
			return q
		}
	}
	t.Fatalf("%s has no verdict", id)
	return result.Requirement{}
}

// used is how much memory is in use.
func used() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Ten thousand tools on a hundred pages: every page is read, so that known
// fixtures are found on the last one, and what is wrong there too.
func TestTenThousandTools(t *testing.T) {
	if testing.Short() || brief.Race {
		t.Skip("it takes a while, and there is nothing to race for")
	}
	const tools, pages = 10_000, 100
	build := func(last string) *server.Catalogue {
		calls := new(callsOf)
		c := new(server.Catalogue)
		for i := range tools - 3 {
			c.Tools = append(c.Tools, calls.tool(fmt.Sprintf("tool_%05d", i), map[string]any{
				"description": "One of many.", "annotations": map[string]any{"readOnlyHint": i%2 == 0},
			}, said("done")))
		}
		c.Tools = append(c.Tools,
			calls.tool("test_simple_text", map[string]any{}, said("text")),
			calls.tool("test_error_handling", map[string]any{}, map[string]any{"content": said("failed")["content"], "isError": true}),
			calls.tool(last, map[string]any{}, said("done")))
		return c
	}
	before := used()
	good := whole(t, transport.NameStdio, server.Options{Catalogue: build("last"), PageSize: tools / pages}, check.CallSafe)
	if good.Verdict != result.Conformant {
		t.Errorf("the run is %s %s: %s", good.Verdict, good.Reason, faulted(good))
	}
	if notes := strings.Join(good.Notes, " "); !strings.Contains(notes, "the fixtures that conformance servers share") {
		t.Errorf("the fixtures on the last page are not recognised: %q", notes)
	}
	if q := verdictOn(t, good, "tools.error.execution-as-result"); q.Verdict != result.Pass {
		t.Errorf("the tool on the last page was not tried: %+v", q)
	}
	if kept := used() - before; kept > 256<<20 {
		t.Errorf("%d MB are in use after the run", kept>>20)
	}
	const unique = "tools.name.unique"
	if q := verdictOn(t, good, unique); q.Verdict != result.Pass {
		t.Errorf("%s is %s: %s", unique, q.Verdict, q.Reason)
	}
	bad := selecting(t, transport.NameStdio, server.Options{Catalogue: build("tool_00000"), PageSize: tools / pages}, check.CallSafe, unique)
	if q := verdictOn(t, bad, unique); q.Verdict != result.Fail {
		t.Errorf("a name of the first page that comes again on the last is not found: %+v", q)
	}
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	v, _, err := wire.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return v.(map[string]any)
}

// Schemas that are large, refer to themselves or hold expressions that other
// implementations need ages for. Each tool comes with a result that fits its
// output schema and with one that does not.
type hardSchema struct {
	name   string
	schema func() string
	fits   string
	unfit  string
	// unknowable schemas cannot be worked with: nothing is said of their results.
	unknowable bool
}

var hard = []hardSchema{
	{
		name: "one megabyte of description",
		schema: func() string {
			return `{"type":"object","description":"` + strings.Repeat("long ", 1<<18) + `","properties":{"n":{"type":"integer"}},"required":["n"]}`
		},
		fits: `{"n": 1}`, unfit: `{"n": "one"}`,
	},
	{
		name: "one megabyte of properties",
		schema: func() string {
			var b strings.Builder
			b.WriteString(`{"type":"object","required":["p0"],"properties":{`)
			for i := range 1000 {
				fmt.Fprintf(&b, `"p%d":{"type":"string","maxLength":9,"description":"%s"},`, i, strings.Repeat("x", 1000))
			}
			return b.String() + `"n":{"type":"integer"}}}`
		},
		fits: `{"p0": "a", "n": 1}`, unfit: `{"p0": "a", "p999": "more than nine"}`,
	},
	{
		name: "one megabyte of enum",
		schema: func() string {
			var b strings.Builder
			for i := range 15_000 {
				fmt.Fprintf(&b, `"value %d %s",`, i, strings.Repeat("y", 50))
			}
			return `{"type":"object","properties":{"e":{"enum":[` + b.String() + `"last"]}},"required":["e"]}`
		},
		fits: `{"e": "last"}`, unfit: `{"e": "none"}`,
	},
	{
		name: "a tree that refers to itself",
		schema: func() string {
			return `{"$ref":"#/$defs/node","type":"object","$defs":{"node":{"type":"object","properties":{"left":{"$ref":"#/$defs/node"},"right":{"$ref":"#/$defs/node"},"v":{"type":"integer"}},"required":["v"]}}}`
		},
		fits: `{"v": 1, "left": {"v": 2, "right": {"v": 3}}}`, unfit: `{"v": 1, "left": {"v": 2, "right": {"v": "three"}}}`,
	},
	{
		name: "a node that needs itself",
		schema: func() string {
			return `{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"v":{"type":"integer"}},"required":["next","v"]}`
		},
		fits: `{"v": 1, "next": {"v": 2, "next": null}}`, unfit: `{"v": 1, "next": {"v": 2}}`,
	},
	{
		name:   "a reference to itself alone",
		schema: func() string { return `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}` },
		fits:   `{}`, unfit: `{"a": 1}`, unknowable: true,
	},
	{
		name: "a pattern that backtracks",
		schema: func() string {
			return `{"type":"object","properties":{"s":{"type":"string","pattern":"^(a+)+$"}},"required":["s"]}`
		},
		fits: `{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`, unfit: `{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}`,
	},
	{
		name: "alternatives that overlap",
		schema: func() string {
			return `{"type":"object","properties":{"s":{"type":"string","pattern":"^(a|a|aa|a?){1,40}b$"}},"required":["s"]}`
		},
		fits: `{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}`, unfit: `{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"}`,
	},
	{
		name: "a pattern too large to compile",
		schema: func() string {
			return `{"type":"object","properties":{"s":{"type":"string","pattern":"^((((x{900}){900}){900}){900})$"}},"required":["s"]}`
		},
		fits: `{"s": "x"}`, unfit: `{"s": "x"}`, unknowable: true,
	},
	{
		name: "looking around",
		schema: func() string {
			return `{"type":"object","properties":{"s":{"type":"string","pattern":"^(?=.*[0-9])(?!.*a).*$"}},"required":["s"]}`
		},
		fits: `{"s": "7"}`, unfit: `{"s": 7}`,
	},
}

// Results that fit are never accused, and those that do not are found, however
// hard the schema is to work with. The same schema is that of the arguments.
func TestHardSchemas(t *testing.T) {
	if testing.Short() || brief.Race {
		t.Skip("it takes a while, and there is nothing to race for")
	}
	const id = "tools.output-schema.conforms"
	if _, ok := schema.Default().Lookup(id); !ok {
		t.Fatalf("there is no requirement %s", id)
	}
	before, tried := used(), brief.Sample(t, hard, 8)
	t.Run("schemas", func(t *testing.T) { hardSchemas(t, id, tried) })
	if kept := used() - before; kept > 256<<20 {
		t.Errorf("%d MB are in use after the runs", kept>>20)
	}
}

func hardSchemas(t *testing.T, id string, tried []hardSchema) {
	for _, h := range tried {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel() // a run mostly waits
			text := h.schema()
			offer := func(structured string) server.Options {
				calls := new(callsOf)
				answer := said(structured)
				answer["structuredContent"] = decoded(t, structured)
				definition := map[string]any{"outputSchema": decoded(t, text), "annotations": map[string]any{"readOnlyHint": true}}
				taking := map[string]any{"inputSchema": decoded(t, text), "annotations": map[string]any{"readOnlyHint": true}}
				return server.Options{Catalogue: &server.Catalogue{Tools: []*server.Tool{
					calls.tool("giving", definition, answer), calls.tool("taking", taking, said("taken")),
				}}, Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
					// The judge looks at the sent messages; the reference server does not.
					"tools/call": server.Named("giving", server.Always(answer)),
				}}}
			}
			good := whole(t, transport.NameStdio, offer(h.fits), check.CallSafe)
			// Listing a schema of a megabyte again and again passes the limits of a trace.
			cut := good.Verdict == result.Incomplete && strings.HasPrefix(good.Reason, wire.ErrFlood.Error()) && faulted(good) == ""
			if good.Verdict != result.Conformant && !cut {
				t.Errorf("with a result that fits the run is %s %s: %s", good.Verdict, good.Reason, faulted(good))
			}
			bad := verdictOn(t, whole(t, transport.NameStdio, offer(h.unfit), check.CallSafe), id)
			switch {
			case h.unknowable && bad.Verdict == result.Fail:
				t.Errorf("nothing is known of the schema, and yet %s is broken: %+v", id, bad.Findings)
			case !h.unknowable && bad.Verdict != result.Fail:
				t.Errorf("with a result that does not fit, %s is %s: %s", id, bad.Verdict, bad.Reason)
			}
		})
	}
}

// Results that are legal and fill what may be kept end the run without a verdict: the server is
// blamed for nothing, and the reason names the limits.
func TestRoomIsFull(t *testing.T) {
	brief.WholeRuns(t)
	for _, over := range transports {
		t.Run(over, inVirtualTime(func(t *testing.T) {
			o := serverOptions()
			o.Behaviour.Methods = map[string]server.Middleware{"tools/call": server.Edit(func(_ *server.Request, result map[string]any) {
				content, _ := result["content"].([]any)
				result["content"] = append(content, map[string]any{"type": "text", "text": strings.Repeat("x", 100_000)})
			})}
			dialer, stop, err := serve(t.Context(), over, o)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}},
				suites.Options{Limits: wire.Limits{Message: 1 << 20, Total: 128 << 20, Events: 200_000, Run: 5 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			if run.Verdict == result.Conformant || !strings.Contains(run.Reason, "limit") {
				t.Errorf("%s: %s", run.Verdict, run.Reason)
			}
			for _, q := range run.Requirements {
				if q.ID == "base.response.present" && (q.Verdict == result.Fail || q.Verdict == result.Warn) {
					t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
				}
			}
		}))
	}
}
