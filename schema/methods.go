package schema

import (
	"slices"
	"strings"
)

// A Party is a side of the protocol: who sends a message, or whom a requirement binds.
type Party string

// The parties. Only Server and Client send messages; the others occur in [Requirement].
const (
	Server              Party = "server"
	Client              Party = "client"
	Both                Party = "both"
	Host                Party = "host"
	AuthorizationServer Party = "authorization-server"
)

// A Method is a request, which has a result, or a notification.
type Method struct {
	Method string `yaml:"method" json:"method"`
	// Sender is whose message it is: the server's, the client's or that of both.
	Sender Party `yaml:"sender" json:"sender"`
	// Definition is that of the message, and Result that of the result.
	Definition string `yaml:"definition" json:"definition"`
	Result     string `yaml:"result" json:"result,omitempty"`
	// Requirement is the id of the one that the result follows its definition. It is "" where the definition, which
	// serves no other method, gives the id.
	Requirement string `yaml:"requirement" json:"requirement,omitempty"`
}

func (m Method) sentBy(p Party) bool {
	return (p == Server || p == Client) && (m.Sender == p || m.Sender == Both)
}

// all lists the methods of the requests, or else the notifications, of a sender.
func (r *Revision) all(sender Party, requests bool) []string {
	var names []string
	for _, m := range r.methods {
		if m.sentBy(sender) && (m.Result != "") == requests {
			names = append(names, m.Method)
		}
	}
	return names
}

// find returns a request, or else a notification, of a sender.
func (r *Revision) find(sender Party, name string, request bool) (def string, ok bool) {
	for _, m := range r.methods {
		if m.Method == name && m.sentBy(sender) && (m.Result != "") == request {
			return m.Definition, true
		}
	}
	return "", false
}

// answered returns a request of either side.
func (r *Revision) answered(method string) (Method, bool) {
	i := slices.IndexFunc(r.methods, func(m Method) bool { return m.Method == method && m.Result != "" })
	if i < 0 {
		return Method{}, false
	}
	return r.methods[i], true
}

// Methods lists the methods of the requests that sender may send.
func (r *Revision) Methods(sender Party) []string { return r.all(sender, true) }

// NotificationMethods lists the methods of the notifications that sender may send.
func (r *Revision) NotificationMethods(sender Party) []string { return r.all(sender, false) }

// Request returns the definition of a request with this method sent by sender.
// It reports false when the revision has no such request in that direction.
func (r *Revision) Request(sender Party, method string) (def string, ok bool) {
	return r.find(sender, method, true)
}

// Notification returns the definition of a notification with this method sent
// by sender. It reports false when the revision has none in that direction.
func (r *Revision) Notification(sender Party, method string) (def string, ok bool) {
	return r.find(sender, method, false)
}

// Result returns the definition of the result that answers a request with this
// method. ping is the one request of both sides; its result is the same.
func (r *Revision) Result(method string) (def string, ok bool) {
	m, ok := r.answered(method)
	return m.Result, ok
}

// RequirementID returns the id of the requirement that a message follows the
// definition: CallToolResult gives schema.call-tool-result. EmptyResult serves
// several methods; use [Revision.ResultRequirementID] for results.
func (r *Revision) RequirementID(def string) string { return "schema." + kebab(def) }

// ResultRequirementID returns the id of the requirement that the result of a
// request with this method follows its definition, or "" for an unknown method.
func (r *Revision) ResultRequirementID(method string) string {
	m, ok := r.answered(method)
	switch {
	case !ok:
		return ""
	case m.Requirement != "":
		return m.Requirement
	}
	return r.RequirementID(m.Result)
}

// kebab turns CallToolResult into call-tool-result and JSONRPCError into jsonrpc-error.
func kebab(name string) string {
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	var b strings.Builder
	for i := range len(name) {
		startsWord := upper(i) && (!upper(i-1) || (i+1 < len(name) && !upper(i+1)))
		if i > 0 && startsWord {
			b.WriteByte('-')
		}
		b.WriteString(strings.ToLower(name[i : i+1]))
	}
	return b.String()
}

// Messages returns the definitions of all requests, notifications and results.
func (r *Revision) Messages() []string {
	var names []string
	add := func(name string, known bool) {
		if known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range []Party{Server, Client} {
		for _, m := range r.Methods(p) {
			add(r.Request(p, m))
			add(r.Result(m))
		}
		for _, m := range r.NotificationMethods(p) {
			add(r.Notification(p, m))
		}
	}
	return names
}
