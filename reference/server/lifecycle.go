package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// initialize negotiates a version and declares capabilities (basic/lifecycle#initialization).
func initialize(_ context.Context, r *Request) (any, *wire.Error) {
	server := r.Session.Server
	var p reading
	asked, capabilities := p.text(r.Params, "protocolVersion"), p.object(r.Params, "capabilities")
	for _, name := range []string{"roots", "sampling", "elicitation", "experimental"} {
		p.optional(capabilities, name)
	}
	info := p.object(r.Params, "clientInfo")
	for _, name := range []string{"name", "version"} {
		p.text(info, name)
	}
	if p.fault != nil {
		return nil, p.fault
	}
	version := server.options.Versions[0]
	if slices.Contains(server.options.Versions, asked) {
		version = asked
	}
	if choose := server.behaviour.Lifecycle.Version; choose != nil {
		version = choose(asked)
	}
	r.Session.mu.Lock()
	if r.Session.phase == fresh {
		r.Session.phase = negotiated
	} else if !server.behaviour.Lifecycle.Again {
		r.Session.mu.Unlock()
		return nil, &wire.Error{Code: InvalidRequest, Message: "Invalid request: the session is initialized already"}
	}
	r.Session.version, r.Session.client = version, capabilities
	r.Session.mu.Unlock()
	result := map[string]any{
		"protocolVersion": version,
		"capabilities":    server.capabilities(),
		"serverInfo":      clone(server.options.Info),
	}
	if server.options.Instructions != "" {
		result["instructions"] = server.options.Instructions
	}
	return result, nil
}

func ping(context.Context, *Request) (any, *wire.Error) { return map[string]any{}, nil }
