package oddclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var (
	ofInitialization = at("basic/lifecycle#initialization")
	ofVersions       = at("basic/lifecycle#version-negotiation")
	ofCapabilities   = at("basic/lifecycle#capability-negotiation")
	ofShutdown       = at("basic/lifecycle#shutdown")
	ofTimeouts       = at("basic/lifecycle#timeouts")
)

const (
	earlyPing    = "A client should send no requests other than pings before initialize is answered; pings it may send."
	optionalUse  = "Components beside base protocol and lifecycle may be implemented as the application needs them."
	optionalName = "A client declares the capabilities that it has; none is required."
)

// ping returns the text of a ping.
func ping(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id) }

var handshakeOddities = []Oddity{
	{ID: "handshake.ping-early", Summary: "A ping follows initialize before that is answered.", Why: earlyPing,
		Source:    ofInitialization,
		Scenarios: []string{"lifecycle/early-ping", "lifecycle/refused", "http/no-session"},
		Apply:     followed(Calls("initialize"), ping("early"))},
	{ID: "handshake.pings-early", Summary: "Five pings follow initialize before that is answered.", Why: earlyPing,
		Source:    ofInitialization,
		Scenarios: []string{"lifecycle/early-ping", "lifecycle/refused", "http/no-session"},
		Apply: followed(Calls("initialize"), ping("early-1"), ping("early-2"), ping("early-3"), ping("early-4"),
			ping("early-5"))},
	{ID: "handshake.ping-between",
		Summary: "A ping stands between the answer to initialize and notifications/initialized.",
		Why:     "The restriction on requests ends with the answer to initialize, and never holds for pings.",
		Source:  ofInitialization, Apply: Before(Calls("notifications/initialized"), ping("between"))},
	{ID: "handshake.initialized-overtaken", Transports: OverHTTP,
		Summary: "notifications/initialized is on its way for 300 ms, and the first request arrives before it.",
		Why:     "Each message is a POST of its own, and one may overtake another.",
		Source:  at("basic/transports#sending-messages-to-the-server"),
		Apply:   Wrapping(func(conn transport.Conn) transport.Conn { return &overtaken{Conn: conn} })},
	{ID: "handshake.initialized-late",
		Summary: "notifications/initialized comes a second after the answer to initialize.",
		Why:     "It says that the client is ready; no time is given.", Source: ofInitialization,
		Scenarios: []string{"lifecycle/early-ping", "http/listening"},
		Apply:     Pausing(Calls("notifications/initialized"), time.Second)},
	{ID: "handshake.pause-after", Summary: "The first request comes a second after notifications/initialized.",
		Why: "No time is given within which a client has to operate.", Source: at("basic/lifecycle#operation"),
		Apply: sleeping(time.Second)},
	{ID: "handshake.bare-info", Summary: "clientInfo has name and version alone.", Why: "title is optional.",
		Source: at("schema#implementation"),
		Apply:  Changing(func(o *client.Options) { o.Info = object{"name": "bare", "version": "0"} })},
	{ID: "handshake.odd-info",
		Summary: "clientInfo has letters beyond ASCII, an empty title, an empty version and a further member.",
		Why:     "The members are strings of any form, and the object is open.", Source: at("schema#implementation"),
		Apply: Changing(func(o *client.Options) {
			o.Info = object{"name": "kliënt 客户端 🤖", "title": "", "version": "", "com.example.build": 7}
		})},
	{ID: "handshake.long-info", Summary: "The name of the client has ten thousand characters.",
		Why: "No length is given.", Source: at("schema#implementation"),
		Apply: Changing(func(o *client.Options) {
			o.Info = object{"name": strings.Repeat("long", 2500), "version": "1.0.0-rc.1+build.5"}
		})},
	{ID: "versions.also-older",
		Summary: "A client that also speaks the older versions goes on when the server answers with one of them.",
		Why: "The server answers with another version that it supports; the client disconnects only if " +
			"it does not support that.",
		Source:    ofVersions,
		Scenarios: []string{"lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version"},
		Untried:   []string{"elicitation.*", "http.*", "base.*", "lifecycle.*"},
		Apply:     func(c *client.Standalone) { c.Versions = []string{"2024-11-05", "2025-03-26"} }},
	{ID: "versions.stays-silent",
		Summary: "A client leaves without a word, and with success, when the version is unknown to it.",
		Why:     "The client should disconnect; it owes no message and no exit code.", Source: ofVersions,
		Scenarios: []string{"lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version"},
		Run: func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			var unsupported *client.UnsupportedVersionError
			if errors.As(err, &unsupported) {
				return nil
			}
			return err
		}},
	{ID: "versions.asks-again",
		Summary: "A client that does not know the version of the server tries once more in a new session.",
		Why:     "After it has disconnected, a client may connect again.", Source: ofVersions,
		Scenarios: []string{"lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version"},
		Run: func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			var unsupported *client.UnsupportedVersionError
			if errors.As(err, &unsupported) {
				err = c.Run(ctx)
			}
			return err
		}},
}

// sleeping waits between the handshake and the first request.
func sleeping(pause time.Duration) apply {
	return func(c *client.Standalone) {
		slept := false
		Sending(Calls("ping"), func(_ *wire.Message, out outgoing) []outgoing {
			if !slept {
				slept = true
				<-time.After(pause)
			}
			return []outgoing{out}
		})(c)
	}
}

// declaring leaves the client with some capabilities alone, and with no answers to the
// requests that belong to others.
func declaring(capabilities object) apply {
	methods := map[string]string{"roots": "roots/list", "sampling": "sampling/createMessage",
		"elicitation": "elicitation/create"}
	return Changing(func(o *client.Options) {
		o.Capabilities = object{}
		for name, v := range capabilities {
			o.Capabilities[name] = v
		}
		for name, method := range methods {
			if capabilities[name] == nil {
				delete(o.Answers, method)
			}
		}
	})
}

var capabilityOddities = []Oddity{
	{ID: "capabilities.none", Summary: "The client declares no capability.", Why: optionalName,
		Source:    ofCapabilities,
		Scenarios: []string{Sampling, Elicitation, RootsSeen, "acts/sampling", "acts/elicitation", "acts/roots"},
		Untried: []string{"roots.*", "sampling.*", "elicitation.*", "content.*", "schema.*", "progress.*",
			"cancellation.*", "base.*", "meta.*", "lifecycle.*"},
		Apply: declaring(object{})},
	{ID: "capabilities.only-roots", Summary: "The client declares roots alone.", Why: optionalName,
		Source: ofCapabilities, Scenarios: []string{Sampling, Elicitation, RootsSeen, "acts/roots"},
		Untried: []string{"sampling.*", "elicitation.*", "content.*", "schema.*", "progress.*", "cancellation.*",
			"base.*", "meta.*", "lifecycle.*"},
		Apply: declaring(object{"roots": object{"listChanged": true}})},
	{ID: "capabilities.only-sampling", Summary: "The client declares sampling alone.", Why: optionalName,
		Source: ofCapabilities, Scenarios: []string{Sampling, Elicitation, RootsSeen, "acts/sampling"},
		Untried: []string{"roots.*", "elicitation.*", "schema.*", "lifecycle.*"},
		Apply:   declaring(object{"sampling": object{}})},
	{ID: "capabilities.only-elicitation", Summary: "The client declares elicitation alone.", Why: optionalName,
		Source: ofCapabilities, Scenarios: []string{Sampling, Elicitation, RootsSeen, "acts/elicitation"},
		Untried: []string{"roots.*", "sampling.*", "content.*", "schema.*", "base.*", "lifecycle.*"},
		Apply:   declaring(object{"elicitation": object{}})},
	{ID: "capabilities.still-roots",
		Summary:   "roots is declared with listChanged: false, and changes of the roots are not announced.",
		Why:       "listChanged says whether the client will emit notifications.",
		Source:    at("client/roots#capabilities"),
		Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"},
		Untried:   []string{"roots.*", "schema.*", "lifecycle.*"},
		Apply: All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{"listChanged": false} }),
			Dropping(Calls("notifications/roots/list_changed")))},
	{ID: "capabilities.plain-roots",
		Summary: "roots is declared as an empty object, and changes of the roots are not announced.",
		Why:     "listChanged is optional.", Source: at("schema#clientcapabilities"),
		Scenarios: []string{RootsSeen, "acts/roots", "acts/root-folder"},
		Untried:   []string{"roots.*", "schema.*", "lifecycle.*"},
		Apply: All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }),
			Dropping(Calls("notifications/roots/list_changed")))},
	{ID: "capabilities.filled", Summary: "The capabilities sampling and elicitation have members.",
		Why: "The schema has them as objects of any members.", Source: at("schema#clientcapabilities"),
		Scenarios: []string{Sampling, Elicitation},
		Apply: Changing(func(o *client.Options) {
			o.Capabilities["sampling"] = object{"com.example.models": list{"small"}}
			o.Capabilities["elicitation"] = object{"com.example.forms": true}
		})},
	{ID: "capabilities.own",
		Summary: "The client declares experimental capabilities, and one that the schema does not have.",
		Why:     "This is not a closed set: any client can define its own, additional capabilities.",
		Source:  at("schema#clientcapabilities"),
		Apply: Changing(func(o *client.Options) {
			o.Capabilities["experimental"] = object{"com.example/notes": object{},
				"plain": object{"depth": list{1, object{}}}}
			o.Capabilities["com.example.workspace"] = object{"readOnly": true}
		})},
}

// nothingUsed are the requirements that a client leaves open which uses no feature.
var nothingUsed = []string{"*"}

var sessionOddities = []Oddity{
	{ID: "use.nothing", Summary: "The client leaves after the handshake.",
		Why: "One side ends the session when it likes to; nothing has to be used before.", Source: ofShutdown,
		Scenarios: []string{Requests, "http/delete", LostSession, "stdio/shutdown", "capabilities/none"},
		Untried:   nothingUsed,
		Apply:     using(func(context.Context, *client.Session, client.Call) error { return nil })},
	{ID: "use.pings", Summary: "The client sends pings and nothing else, one each second.", Why: optionalUse,
		Source: at("basic/utilities/ping#overview"), Scenarios: []string{Requests, "http/delete", LostSession},
		Untried: nothingUsed,
		Apply: using(func(ctx context.Context, _ *client.Session, call client.Call) error {
			for range 4 {
				if _, err := call(ctx, "ping", nil); err != nil || !Passes(ctx, time.Second) {
					return err
				}
			}
			return nil
		})},
	{ID: "use.waits", Summary: "The client sends nothing after the handshake, stays for five seconds and leaves.",
		Why: optionalUse, Source: at("basic/lifecycle#operation"),
		Scenarios: []string{"http/listening", "http/delete"}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, _ *client.Session, _ client.Call) error {
			Passes(ctx, 5*time.Second)
			return nil
		})},
	{ID: "use.backwards",
		Summary: "Prompts, resources and tools are used in this order, and the log level is set last.",
		Why:     "The operation phase has no order.", Source: at("basic/lifecycle#operation"),
		Scenarios: []string{"lists/pages"}, Untried: nothingUsed,
		Apply: using(func(ctx context.Context, s *client.Session, call client.Call) error {
			for _, step := range []struct {
				capability, method string
				params             object
			}{
				{"completions", "completion/complete",
					object{"ref": object{"type": "ref/prompt", "name": "travel"},
						"argument": object{"name": "country", "value": ""}}},
				{"prompts", "prompts/list", nil},
				{"resources", "resources/templates/list", nil},
				{"resources", "resources/list", nil},
				{"tools", "tools/list", nil},
				{"logging", "logging/setLevel", object{"level": "error"}},
				{"", "ping", nil},
			} {
				if step.capability != "" && !s.Capability(step.capability) {
					continue
				}
				if _, err := call(ctx, step.method, step.params); err != nil {
					return err
				}
			}
			return nil
		})},
	{ID: "use.slowly", Summary: "Half a second passes before each message.", Why: "No page gives a pace.",
		Source: at("basic/lifecycle#operation"),
		Apply: Pausing(func(m *wire.Message) bool { return m.Method != "" && m.Method != "initialize" },
			100*time.Millisecond)},
	{ID: "sessions.probe",
		Summary: "The client opens a session only to see whether the server is there, and works in a second one.",
		Why:     "A server can handle several connections, and a session may end after the handshake.",
		Source:  ofShutdown, Scenarios: []string{LostSession, "http/delete", "stdio/shutdown"},
		Run: func(ctx context.Context, c client.Standalone) error {
			probe := c
			probe.Use = func(context.Context, *client.Session, client.Call) error { return nil }
			probe.Extra = nil
			_ = probe.Run(ctx)
			return c.Run(ctx)
		}},
	{ID: "sessions.two", Summary: "The client works in two sessions at the same time.",
		Why:       "A server can handle several connections, and each stands for itself.",
		Source:    at("basic/transports#streamable-http"),
		Scenarios: []string{LostSession, CutStream, "lists/pages", Requests, "http/no-session"},
		Run: func(ctx context.Context, c client.Standalone) error {
			second := c
			// Only one of them does what a user decides.
			second.UserActions = ""
			done := make(chan error, 1)
			go func() { done <- second.Run(ctx) }()
			err := c.Run(ctx)
			if other := <-done; err == nil {
				err = other
			}
			return err
		}},
	{ID: "sessions.declares-once", Transports: OverHTTP,
		Summary:   "In a session that replaces a lost one, the client declares no capability and uses none.",
		Why:       "Capabilities are negotiated in each session.",
		Source:    at("basic/lifecycle#capability-negotiation"),
		Scenarios: []string{LostSession, "http/lost-again", "lists/lost-session"},
		Untried:   []string{"roots.*", ids.LifecycleCapabilityClientEmitsRootsListChanged},
		Apply: func(c *client.Standalone) {
			begun := 0
			Sending(Anything, func(m *wire.Message, out outgoing) []outgoing {
				switch {
				case m.Method == "initialize":
					begun++
				case begun > 1 && m.Method == "notifications/roots/list_changed":
					return nil
				}
				return []outgoing{out}
			})(c)
			DeclaringOnce(c)
		}},
	{ID: "sessions.in-turn", Summary: "The client works in two sessions, one after the other.",
		Why: "After a session a client may begin another one.", Source: ofShutdown,
		Scenarios: []string{LostSession, "lists/pages"},
		Run: func(ctx context.Context, c client.Standalone) error {
			if err := c.Run(ctx); err != nil {
				return err
			}
			c.UserActions = ""
			return c.Run(ctx)
		}},
	{ID: "sessions.retry", Summary: "A client whose session fails tries once more after a second.",
		Why: "A client may connect again after a failure.", Source: at("basic/lifecycle#error-handling"),
		Scenarios: []string{"lifecycle/refused", "stdio/exits-early", "lifecycle/no-version"},
		Run: func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			if err != nil && Passes(ctx, time.Second) {
				c.UserActions = ""
				err = c.Run(ctx)
			}
			return err
		}},
	{ID: "exit.always-zero", Summary: "The client ends with success whatever has happened.",
		Why: "No page gives exit codes of clients.", Source: ofShutdown,
		Scenarios: []string{"lifecycle/refused", "stdio/exits-early", "lifecycle/no-version", "auth/other-issuer"},
		Run: func(ctx context.Context, c client.Standalone) error {
			_ = c.Run(ctx)
			return nil
		}},
	{ID: "exit.always-one", Summary: "The client ends with a failure whatever has happened.",
		Why: "No page gives exit codes of clients.", Source: ofShutdown,
		Scenarios: []string{"lifecycle/refused", "stdio/exits-early", "lifecycle/no-version"},
		Untried:   []string{ids.BaseSupportOtherComponents, ids.LifecycleErrorMissingCapability},
		Run: func(ctx context.Context, c client.Standalone) error {
			_ = c.Run(ctx)
			return ErrDead
		}},
	{ID: "timeouts.short",
		Summary: "The client waits a third of a second for an answer, and cancels what takes longer.",
		Why:     "Timeouts are the client's choice, and may be different for each request.", Source: ofTimeouts,
		Scenarios: []string{"time/silence", "time/silent-tool", "time/slow", "time/endless-progress"},
		Apply:     Impatient},
	{ID: "timeouts.leave", Summary: "The client leaves when an answer takes longer than a second.",
		Why: "A sender should cancel what it gives up; the end of the session also tells the server that " +
			"nobody waits.",
		Source: ofTimeouts, Scenarios: []string{"time/silence", "time/silent-tool", "time/endless-progress"},
		Untried: []string{
			ids.LifecycleTimeoutCancel, ids.HTTPClientCancelExplicit, ids.CancellationSameDirection,
			ids.CancellationInProgress, ids.CancellationLateResponse,
			ids.SchemaCancelledNotification,
		},
		Run: func(ctx context.Context, c client.Standalone) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			c.Timeout = time.Second
			Dropping(Calls("notifications/cancelled"))(&c)
			Sending(Calls("notifications/cancelled"), func(*wire.Message, outgoing) []outgoing {
				cancel(ErrDead)
				return nil
			})(&c)
			return c.Run(ctx)
		}},
	{ID: "exit.at-errors", Summary: "The client ends at the first error with which the server answers a request.",
		Why: "A client may do anything with an error.", Source: at("basic/lifecycle#error-handling"),
		Scenarios: []string{"features/errors", "hostile/lists"}, Untried: []string{ids.BaseErrorDataFree},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Kind == wire.ErrorResponse && e.Msg.ID.Usable()
		})},
	{ID: "exit.at-once", Summary: "The client sends a request and leaves without waiting for the answer.",
		Why: "Either side may end the connection at any time during operation.", Source: ofShutdown,
		Scenarios: []string{"http/delete", "stdio/shutdown"},
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Start(ctx, "tools/call", object{"name": "slow", "arguments": object{"seconds": 5}})
		})},
}

// overtaken is a connection on which notifications/initialized is on its way for some time.
type overtaken struct{ transport.Conn }

func (c *overtaken) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if wire.Parse(out.Raw).Method != "notifications/initialized" {
		return c.Conn.Send(ctx, out)
	}
	go func() {
		<-time.After(300 * time.Millisecond)
		_, _ = c.Conn.Send(context.WithoutCancel(ctx), out)
	}()
	return &wire.Event{Kind: wire.KindNote}, nil
}
