package config

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

const schemaURL = "https://raw.githubusercontent.com/mcpconform/mcpconform/main/fixtures/config/mcpconform.schema.json"

// maxShown bounds the tools that Initial lists.
const maxShown = 200

// Initial returns a file for a target. Its comments hold the results of discovery, the failures that its SDK is known
// to cause, and the gaps to fill in. The file refers to environment variables, and to secrets that the redactor knows,
// in place of their values. found is nil if there was nothing to discover, and sdk if none was recognised.
func Initial(target Target, found *check.Target, sdk *result.SDK, redactor *transport.Redactor) []byte {
	var b bytes.Buffer
	target, hidden := withoutSecrets(target, redactor)
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# yaml-language-server: $schema=%s", schemaURL)
	p("# Configuration of mcpconform. Flags on the command line override this file.")
	p("")
	if hidden > 0 {
		p("# Secrets are left out: set the environment variables %s1 …, or refer to your own.", secretVariable)
	}
	writeTarget(p, target)
	p("")
	p("# Which tools may be called: none, safe (tools annotated as read-only, tools named")
	p("# below and tools of known test servers) or all. Real tools have real effects.")
	p("callTools: safe")
	if found != nil {
		p("")
		writeTools(p, found)
	}
	p("")
	writeToolRoles(p, found)
	p("")
	writeExpected(p, sdk)
	p("")
	p("# Texts that must not appear in log messages: credentials, and personal data.")
	p("# secrets: [\"${API_KEY}\"]")
	p("# personalData: [jane.doe@example.com]")
	p("")
	p("# For a server over HTTP: the origins that it trusts on purpose (* for all), and")
	p("# whether it is meant to be reachable from outside.")
	p("# trustedOrigins: [\"https://app.example\"]")
	p("# public: true")
	p("")
	p("# limits:")
	p("#   timeout: 10s  # for one answer")
	p("#   startTimeout: 30s  # for the start of the server")
	p("#   runTimeout: 10m  # for the whole run")
	p("# select: []      # judge only these requirements: IDs, globs, pages, levels")
	p("# skip: []")
	p("# strict: true    # count a broken SHOULD as a failure")
	return redactor.Bytes(b.Bytes())
}

// writeExpected offers to accept failures: those that the SDK of the target is known to cause, if
// one was recognised.
func writeExpected(p printer, sdk *result.SDK) {
	name := "the SDK of the server"
	if sdk != nil {
		name = comment(strings.TrimSpace(sdk.Name + " " + sdk.Version))
	}
	p("# Failures that %s is known to cause do not count. Remove this once there are none.", name)
	p("# expectSDK: true")
	p("")
	p("# Failures that are accepted for the time being. An entry that no longer fails")
	p("# must be removed: the run says so and exits with 1.")
	p("# expectedFailures:")
	if sdk == nil {
		p("#   - id: tools.error.unknown-tool-code")
		p("#     reason: https://example.com/issues/1")
		p("#     expires: 2030-12-31")
		return
	}
	for _, f := range schema.Default().KnownFaults() {
		if f.SDK != sdk.Name || f.MendedIn(sdk.Version) {
			continue
		}
		for _, id := range f.Requirements {
			p("#   - id: %s", id)
			p("#     reason: %s", flow(f.SDK+", "+f.Versions+": "+f.Thread))
		}
	}
}

// secretVariable is the beginning of the names of variables that stand for secrets.
const secretVariable = "MCP_SECRET_"

// withoutSecrets refers to a variable in the place of each secret, and returns
// how many there are.
func withoutSecrets(t Target, r *transport.Redactor) (clean Target, hidden int) {
	refer := func(text string) string {
		parts := strings.Split(text, transport.Redacted)
		for i := range parts[1:] {
			hidden++
			parts[i] += fmt.Sprintf("${%s%d}", secretVariable, hidden)
		}
		return strings.Join(parts, "")
	}
	t.URL = refer(shownURL(t.URL, r))
	t.Command = slices.Clone(t.Command)
	for i, arg := range t.Command {
		t.Command[i] = refer(r.String(arg))
	}
	t.Start = refer(r.String(t.Start))
	t.TransportCommand = refer(r.String(t.TransportCommand))
	return t, hidden
}

// shownURL returns a URL, in which the port may be a placeholder, without secrets.
func shownURL(raw string, r *transport.Redactor) string {
	const somePort = "65535"
	u, err := url.Parse(strings.ReplaceAll(raw, transport.PortPlaceholder, somePort))
	if err != nil {
		return r.String(raw)
	}
	shown := r.URL(u)
	if strings.Contains(raw, transport.PortPlaceholder) {
		shown = strings.ReplaceAll(shown, somePort, transport.PortPlaceholder)
	}
	return shown
}

type printer func(format string, args ...any)

func writeTarget(p printer, t Target) {
	switch {
	case len(t.Command) > 0:
		p("target:")
		p("  command: %s", flow(t.Command))
	case t.URL != "" || t.TransportCommand != "":
		p("target:")
		if t.URL != "" {
			p("  url: %s", flow(t.URL))
		}
		if t.TransportCommand != "" {
			p("  transportCommand: %s", flow(t.TransportCommand))
		}
		if t.Start != "" {
			p("  start: %s", flow(t.Start))
		}
		for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
			p("  # headers: {%s: \"${VARIABLE}\"}", comment(name))
		}
	default:
		p("# target:")
		p("#   command: [./my-server, --stdio]  # or url: http://localhost:8080/mcp")
		return
	}
	if len(t.Env) > 0 {
		p("  env:")
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			p("    %s: %s", flow(name), flow("${"+name+"}"))
		}
	}
	if t.Cwd != "" {
		p("  cwd: %s", flow(t.Cwd))
	}
}

func writeTools(p printer, found *check.Target) {
	tools := found.Tools()
	if len(tools) == 0 {
		p("# The server does not list any tools.")
		return
	}
	p("# The server's tools, and whether they are called with callTools: safe:")
	for i, tool := range tools {
		if i == maxShown {
			p("#   and %d more", len(tools)-maxShown)
			break
		}
		how := "no: it is not annotated as read-only"
		if found.Settings.Allowed(tool) {
			how = "yes: it is annotated as read-only or known"
		}
		p("#   %-30s %s", comment(fmt.Sprint(tool["name"])), how)
	}
}

func writeToolRoles(p printer, found *check.Target) {
	var known map[string]check.Call
	p("# Some requirements can be tried only with a tool that plays a certain role.")
	p("# The tools that are named here may be called.")
	if found != nil {
		known = found.Settings.ToolRoles
		if found.Profile != "" {
			p("# This server is known as %s;", comment(found.Profile))
			p("# it has a tool for each role marked with *.")
		}
	}
	p("# toolRoles:")
	for _, role := range profile.Roles() {
		if call, ok := known[role.Name]; ok {
			p("#   # * a tool that %s", role.Does)
			p("#   %s: {tool: %s, arguments: %s}", role.Name, flow(call.Tool), flow(call.Params()["arguments"]))
			continue
		}
		p("#   # a tool that %s%s", role.Does, candidates(role.Name, found))
		p("#   %s: {tool: NAME, arguments: {}}", role.Name)
	}
}

// candidates names tools that may fit a role, judging by their names and what they
// declare.
func candidates(role string, found *check.Target) string {
	if found == nil {
		return ""
	}
	word, _, _ := strings.Cut(role, "-")
	var names []string
	for _, tool := range found.Tools() {
		name, ok := tool["name"].(string)
		if !ok || len(names) == 5 {
			continue
		}
		if strings.Contains(strings.ToLower(name), word) || role == "structured" && tool["outputSchema"] != nil {
			names = append(names, comment(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; perhaps " + strings.Join(names, ", ")
}

// flow writes a value as JSON on one line, which is YAML as well.
func flow(v any) string {
	text, err := wire.Marshal(v)
	if err != nil {
		return `""`
	}
	// YAML forbids some characters that JSON lets stand.
	return strings.Map(func(r rune) rune {
		if r == 0x7f || r >= 0x80 && r < 0xa0 && r != 0x85 {
			return '?'
		}
		return r
	}, string(text))
}

// comment makes a name from a peer fit for a comment: one line, not too long.
func comment(s string) string {
	const most = 60
	clean := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfffd || r == 0xfeff {
			return '?'
		}
		return r
	}, s))
	if len(clean) > most {
		clean = append(clean[:most], '…')
	}
	return string(clean)
}
