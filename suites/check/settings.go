package check

import (
	"regexp"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// CallMode says which tools may be called.
type CallMode string

// The modes. Real servers have real side effects: Safe calls only tools that
// are annotated read-only, unless they show secrets by their names, or that the
// settings name.
const (
	CallNone CallMode = "none"
	CallSafe CallMode = "safe"
	CallAll  CallMode = "all"
)

// Call is a tool with the arguments to call it with.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// Params returns the params of tools/call.
func (c Call) Params() map[string]any {
	arguments := c.Arguments
	if arguments == nil {
		arguments = map[string]any{}
	}
	return map[string]any{"name": c.Tool, "arguments": arguments}
}

// Settings are the permissions of a run on the target, and the facts known about the target.
type Settings struct {
	CallTools CallMode
	// ToolRoles names a call of a tool for each role: "error" for one that fails,
	// "progress" for one that reports progress …
	ToolRoles map[string]Call
	// Secrets and Personal are texts that must not turn up in log messages:
	// credentials that the target holds, and what identifies persons.
	Secrets, Personal []string
	// TrustedOrigins are web origins that the server trusts on purpose, among
	// them null or, for all, *.
	TrustedOrigins []string
	// Public says that the server is meant to be reachable from outside.
	Public bool
	// GivesUpAfter is the time after which the server gives up a request of its own that
	// is not answered, at most; 0 if that is not known.
	GivesUpAfter time.Duration
	// Authorization says what is known about a server's protection.
	Authorization Authorization
}

// Authorization says how a server over HTTP is protected, as far as that
// cannot be found out. The tokens serve to be refused.
type Authorization struct {
	// Protected says that the server serves nobody without an access token.
	Protected bool
	// Methods are those that need a token when not all do.
	Methods []string
	// Resource is the canonical URI of the server where that is not the URL in use.
	Resource string
	// TrailingSlash says that the final slash of the resource means something.
	TrailingSlash bool
	Expired       string // a token that was good once
	OtherAudience string // one that the same authorization server issued for another resource
	OtherIssuer   string // one of another authorization server
	OtherUser     string // a valid one of another user
	// Narrow is a token whose scope is too small for a request.
	Narrow        string
	NarrowRequest RPC
}

// Tokens returns the tokens that there are.
func (a Authorization) Tokens() []string {
	return slices.DeleteFunc([]string{a.Expired, a.OtherAudience, a.OtherIssuer, a.OtherUser, a.Narrow},
		func(s string) bool { return s == "" })
}

// Given returns the options that the settings come from, as [schema.Hint] names them.
func (s *Settings) Given() []string {
	a := &s.Authorization
	var given []string
	for role, call := range s.ToolRoles {
		if call.Tool != "" {
			given = append(given, "toolRoles."+role)
		}
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"callTools", s.CallTools == CallAll},
		{"secrets", len(s.Secrets) > 0},
		{"personalData", len(s.Personal) > 0},
		{"trustedOrigins", len(s.TrustedOrigins) > 0},
		{"public", s.Public},
		{"--gives-up-after", s.GivesUpAfter > 0},
		{"authorization.protected", a.Protected},
		{"authorization.methods", len(a.Methods) > 0},
		{"authorization.resource", a.Resource != ""},
		{"authorization.trailingSlash", a.TrailingSlash},
		{"authorization.expired", a.Expired != ""},
		{"authorization.otherAudience", a.OtherAudience != ""},
		{"authorization.otherIssuer", a.OtherIssuer != ""},
		{"authorization.otherUser", a.OtherUser != ""},
		{"authorization.narrow", a.Narrow != ""},
	} {
		if option.set {
			given = append(given, option.name)
		}
	}
	return given
}

// Allowed reports whether a tool, as the server lists it, may be called.
func (s *Settings) Allowed(tool map[string]any) bool { return s.Disallowed(tool) == "" }

// Disallowed says why a tool, as the server lists it, must not be called; "" if it may be.
func (s *Settings) Disallowed(tool map[string]any) string {
	name, _ := tool["name"].(string)
	switch s.CallTools {
	case CallNone:
		return "calls of tools are turned off"
	case CallAll:
		return ""
	}
	readOnly, _ := wire.At(tool, "annotations", "readOnlyHint").(bool)
	switch {
	case readOnly && !revealing.MatchString(name), s.named(tool):
		return ""
	case readOnly:
		return "named as if it showed secrets"
	}
	return "not annotated readOnlyHint: true"
}

// named reports whether a tool has a role.
func (s *Settings) named(tool map[string]any) bool {
	for _, c := range s.ToolRoles {
		if c.Tool == tool["name"] {
			return true
		}
	}
	return false
}

// revealing fits names of tools that show secrets, such as get-env: these do
// no harm, but what they return would stand in traces and reports.
var revealing = regexp.MustCompile(
	`(?i:(^|[^a-z])(print)?(env|environ|environment|secrets?|credentials?|passwords?)([^a-z]|$))` +
		`|[a-z](Env|Environ|Environment|Secrets?|Credentials?|Passwords?)([^a-z]|$)`)

// maxUncalled bounds how many tools are named.
const maxUncalled = 100

// Uncalled returns the tools that must not be called, with the reasons: at most a hundred.
func (t *Target) Uncalled() []result.Uncalled {
	var list []result.Uncalled
	for _, tool := range t.Tools() {
		name, ok := tool["name"].(string)
		if !ok {
			continue
		}
		if why := t.Settings.Disallowed(tool); why != "" {
			list = append(list, result.Uncalled{Tool: name, Reason: why})
		}
		if len(list) == maxUncalled {
			break
		}
	}
	return list
}

// Callable returns the tools that may be called. It decides once for each list: many checks ask, and a list may have
// a hundred thousand tools.
func (t *Target) Callable() []map[string]any {
	list := t.List("tools/list")
	list.deciding.Do(func() {
		for _, tool := range list.Items {
			if t.Settings.Allowed(tool) {
				list.callable = append(list.callable, tool)
			}
		}
	})
	return slices.Clone(list.callable)
}

// Fitting returns the call for a role that find finds among the tools that may be called. It looks once for each role
// and list.
func (t *Target) Fitting(role string, find func(tools []map[string]any) Call) (Call, bool) {
	found, known := t.List("tools/list").roles.Load(role)
	if !known {
		found, _ = t.List("tools/list").roles.LoadOrStore(role, find(t.Callable()))
	}
	call := found.(Call)
	return call, call.Tool != ""
}
