package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// initialize negotiates a version and declares capabilities (basic/lifecycle#initialization).
func initialize(_ context.Context, r *Request) (any, *wire.Error) {
	server := r.Session.Server
	asked, rpcErr := text(r.Params, "protocolVersion")
	if rpcErr != nil {
		return nil, rpcErr
	}
	if _, ok := r.Params["capabilities"]; !ok {
		return nil, invalid("capabilities is missing")
	}
	capabilities, rpcErr := object(r.Params, "capabilities")
	if rpcErr != nil {
		return nil, rpcErr
	}
	for _, name := range []string{"roots", "sampling", "elicitation", "experimental"} {
		if _, rpcErr := object(capabilities, name); rpcErr != nil {
			return nil, rpcErr
		}
	}
	if _, ok := r.Params["clientInfo"]; !ok {
		return nil, invalid("clientInfo is missing")
	}
	info, rpcErr := object(r.Params, "clientInfo")
	if rpcErr != nil {
		return nil, rpcErr
	}
	for _, name := range []string{"name", "version"} {
		if _, rpcErr := text(info, name); rpcErr != nil {
			return nil, rpcErr
		}
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
