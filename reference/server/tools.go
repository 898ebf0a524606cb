package server

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Tool is one tool.
type Tool struct {
	// Definition is the entry of tools/list.
	Definition map[string]any
	// Call serves tools/call with arguments that fit the input schema.
	Call func(ctx context.Context, r *Request, arguments map[string]any) (result any, rpcErr *wire.Error)

	compile sync.Once
	input   *schema.Tool // nil if the definition has no valid schema
}

// Name of the tool.
func (t *Tool) Name() string { return member(t.Definition, "name") }

// check validates arguments against the input schema. A definition whose
// schema does not compile accepts everything.
func (t *Tool) check(arguments map[string]any) *wire.Error {
	t.compile.Do(func() { t.input = compile(t.Definition["inputSchema"]) })
	if fault := misfit(t.input, arguments); fault != "" {
		return invalid("the arguments of %s do not fit its input schema: %s", oneLine(t.Name()), fault)
	}
	return nil
}

// compile returns nil if a value is not a schema.
func compile(value any) *schema.Tool {
	document, _, err := wire.Decode(jsonOf(value))
	if err != nil {
		return nil
	}
	compiled, err := schema.CompileTool(document)
	if err != nil {
		return nil
	}
	return compiled
}

// misfit says where a value does not fit a schema, or "".
func misfit(s *schema.Tool, value any) string {
	if s == nil {
		return ""
	}
	violations := s.Validate(value)
	if len(violations) == 0 {
		return ""
	}
	return oneLine(violations[0].String())
}

func (s *Session) toolList() []*Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func listTools(_ context.Context, r *Request) (any, *wire.Error) {
	return page(r, "tools", r.Session.toolList(), (*Tool).Name, func(t *Tool) o { return t.Definition })
}

func callTool(ctx context.Context, r *Request) (any, *wire.Error) {
	var p reading
	name, arguments := p.text(r.Params, "name"), p.optional(r.Params, "arguments")
	if p.fault != nil {
		return nil, p.fault
	}
	tools := r.Session.toolList()
	i := slices.IndexFunc(tools, func(t *Tool) bool { return t.Name() == name })
	if i < 0 {
		// server/tools#error-handling
		return nil, &wire.Error{Code: InvalidParams, Message: "Unknown tool: " + oneLine(name)}
	}
	if rpcErr := tools[i].check(arguments); rpcErr != nil {
		return nil, rpcErr
	}
	return tools[i].Call(ctx, r, arguments)
}
