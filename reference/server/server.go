package server

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Version is the protocol revision that the server implements.
const Version = "2025-06-18"

// Options of a server. The zero value offers everything that the revision
// knows, as [DefaultCatalogue] has it, and records nothing.
type Options struct {
	Behaviour Behaviour
	// Catalogue holds the tools, resources and prompts with which each session
	// begins; nil is DefaultCatalogue.
	Catalogue *Catalogue
	// Without names capabilities to leave out, as dotted paths: "tools",
	// "resources.subscribe", "prompts.listChanged", "logging", "completions".
	Without []string
	// Versions are the protocol versions that the server accepts, latest first; nil
	// stands for the three revisions up to 2025-06-18. All are served as 2025-06-18
	// demands; in particular, batches are refused.
	Versions []string
	// Info replaces serverInfo; Instructions adds instructions.
	Info         map[string]any
	Instructions string
	// PageSize is the number of items on a page of a list; 0 is 4.
	PageSize int
	// MaxMessage bounds an incoming message, in bytes; 0 is what the trace keeps of one or, without a trace, 16 MiB.
	MaxMessage int
	// CallTimeout is how long an answer of the client is awaited; 0 is a minute.
	CallTimeout time.Duration

	// Trace, unless nil, records every connection in a log of its own: one for
	// each stdio process and each HTTP session. HTTP requests that belong to
	// no session go to the log of the newest.
	Trace *wire.Trace
	// Label of the logs.
	Label string

	// HTTP holds options of the HTTP transports.
	HTTP HTTPOptions
}

// HTTPOptions choose between conformant ways to serve HTTP.
type HTTPOptions struct {
	// Origins and Hosts are trusted in addition to those of the loopback interface.
	// The host of a request is checked only when it arrives on loopback.
	Origins, Hosts []string
	// AlwaysSSE answers every request with an SSE stream if the client takes one.
	AlwaysSSE bool
	// NoSessionID assigns no session ids: all requests belong to the session
	// that was initialized last.
	NoSessionID bool
	// NoGet and NoDelete answer GET and DELETE with 405.
	NoGet, NoDelete bool
	// NoStreamable and NoLegacy leave out one of the two transports.
	NoStreamable, NoLegacy bool
	// NoEventID sends events without ids: streams cannot be resumed.
	NoEventID bool
	// Protection makes the server demand access tokens; nil leaves it open.
	Protection *Protection
}

// Limits of a server. They protect the machine from a hostile client; an honest
// client does not reach them.
const (
	defaultMaxMessage  = 16 << 20
	defaultPageSize    = 4
	defaultCallTimeout = time.Minute
	maxRunning         = 1000 // requests in progress, per session and direction
	maxSubscriptions   = 10_000
)

// DefaultVersions returns the versions that a server speaks if its options name
// none, the latest first.
func DefaultVersions() []string { return []string{Version, "2025-03-26", "2024-11-05"} }

// Server serves any number of connections, each a session of its own.
type Server struct {
	options   Options
	behaviour *Behaviour

	mu       sync.Mutex
	sessions []*Session // live ones, oldest first
}

// New returns a server.
func New(o Options) *Server {
	if o.Catalogue == nil {
		o.Catalogue = DefaultCatalogue()
	}
	if len(o.Versions) == 0 {
		o.Versions = DefaultVersions()
	}
	if o.Info == nil {
		o.Info = map[string]any{
			"name": "mcpconform-reference-server", "title": "mcpconform reference server", "version": "1.0.0",
		}
	}
	if o.PageSize <= 0 {
		o.PageSize = defaultPageSize
	}
	if o.MaxMessage <= 0 && o.Trace != nil {
		o.MaxMessage = o.Trace.Limits.Message
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = defaultMaxMessage
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = defaultCallTimeout
	}
	s := &Server{options: o}
	s.behaviour = &s.options.Behaviour
	return s
}

// Sessions returns the sessions that live now, oldest first.
func (s *Server) Sessions() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

func (s *Server) add(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, session)
}

func (s *Server) remove(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = slices.DeleteFunc(s.sessions, func(o *Session) bool { return o == session })
}

// offers reports whether a capability, given as a dotted path, is not left out.
func (s *Server) offers(path string) bool {
	return !slices.ContainsFunc(s.options.Without, func(out string) bool {
		return out == path || strings.HasPrefix(path, out+".")
	})
}

// capabilities returns what initialize declares.
func (s *Server) capabilities() map[string]any {
	declared := make(map[string]any)
	for name, flags := range map[string][]string{
		"tools": {"listChanged"}, "prompts": {"listChanged"}, "resources": {"listChanged", "subscribe"},
		"logging": nil, "completions": nil,
	} {
		if !s.offers(name) {
			continue
		}
		capability := make(map[string]any)
		for _, flag := range flags {
			if s.offers(name + "." + flag) {
				capability[flag] = true
			}
		}
		declared[name] = capability
	}
	return declared
}

// connect opens the log of a connection; it is nil without a trace.
func (s *Server) connect(transport string) *wire.Log {
	if s.options.Trace == nil {
		return nil
	}
	return s.options.Trace.Connect(transport, s.options.Label)
}

// record appends to a log that may be nil. An error means that the peer has
// sent more than the log holds.
func (s *Server) record(log *wire.Log, e wire.Event) error {
	if log == nil {
		return nil
	}
	if e.From == wire.Server {
		e.Deliberate = append(e.Deliberate[:len(e.Deliberate):len(e.Deliberate)], s.behaviour.Breaks...)
	}
	_, err := log.Append(e)
	return err
}
