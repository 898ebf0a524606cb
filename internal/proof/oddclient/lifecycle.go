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
	ofInitialization = "basic/lifecycle#initialization"
	ofVersions       = "basic/lifecycle#version-negotiation"
	ofCapabilities   = "basic/lifecycle#capability-negotiation"
	ofShutdown       = "basic/lifecycle#shutdown"
	ofTimeouts       = "basic/lifecycle#timeouts"
)

const (
	earlyPing    = "A client should send no requests other than pings before initialize is answered; pings it may send."
	optionalUse  = "Components beside base protocol and lifecycle may be implemented as the application needs them."
	optionalName = "A client declares the capabilities that it has; none is required."
)

// ping returns the text of a ping.
func ping(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"ping"}`, id) }

var handshakeOddities = []Oddity{
	odd("handshake.ping-early", "A ping follows initialize before that is answered.", earlyPing, ofInitialization,
		followed(Calls("initialize"), ping("early"))).
		In("lifecycle/early-ping", "lifecycle/refused", "http/no-session"),
	odd("handshake.pings-early", "Five pings follow initialize before that is answered.", earlyPing, ofInitialization,
		followed(Calls("initialize"), ping("early-1"), ping("early-2"), ping("early-3"), ping("early-4"),
			ping("early-5"))).In("lifecycle/early-ping", "lifecycle/refused", "http/no-session"),
	odd("handshake.ping-between", "A ping stands between the answer to initialize and notifications/initialized.",
		"The restriction on requests ends with the answer to initialize, and never holds for pings.", ofInitialization,
		Before(Calls("notifications/initialized"), ping("between"))),
	odd("handshake.initialized-overtaken",
		"notifications/initialized is on its way for 300 ms, and the first request arrives before it.",
		"Each message is a POST of its own, and one may overtake another.",
		"basic/transports#sending-messages-to-the-server",
		Wrapping(func(conn transport.Conn) transport.Conn { return &overtaken{Conn: conn} })).Only(OverHTTP),
	odd("handshake.initialized-late", "notifications/initialized comes a second after the answer to initialize.",
		"It says that the client is ready; no time is given.", ofInitialization,
		Pausing(Calls("notifications/initialized"), time.Second)).In("lifecycle/early-ping", "http/listening"),
	odd("handshake.pause-after", "The first request comes a second after notifications/initialized.",
		"No time is given within which a client has to operate.", "basic/lifecycle#operation", sleeping(time.Second)),
	odd("handshake.bare-info", "clientInfo has name and version alone.", "title is optional.", "schema#implementation",
		Changing(func(o *client.Options) { o.Info = object{"name": "bare", "version": "0"} })),
	odd("handshake.odd-info",
		"clientInfo has letters beyond ASCII, an empty title, an empty version and a further member.",
		"The members are strings of any form, and the object is open.", "schema#implementation",
		Changing(func(o *client.Options) {
			o.Info = object{"name": "kliënt 客户端 🤖", "title": "", "version": "", "com.example.build": 7}
		})),
	odd("handshake.long-info", "The name of the client has ten thousand characters.", "No length is given.",
		"schema#implementation", Changing(func(o *client.Options) {
			o.Info = object{"name": strings.Repeat("long", 2500), "version": "1.0.0-rc.1+build.5"}
		})),
	odd("versions.also-older",
		"A client that also speaks the older versions goes on when the server answers with one of them.",
		"The server answers with another version that it supports; the client disconnects only "+
			"if it does not support that.", ofVersions,
		func(c *client.Standalone) { c.Versions = []string{"2024-11-05", "2025-03-26"} }).
		In("lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version").
		Open("elicitation.*", "http.*", "base.*", "lifecycle.*"),
	odd("versions.stays-silent", "A client leaves without a word, and with success, when the version is unknown to it.",
		"The client should disconnect; it owes no message and no exit code.", ofVersions, nil).
		In("lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version").
		Running(func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			var unsupported *client.UnsupportedVersionError
			if errors.As(err, &unsupported) {
				return nil
			}
			return err
		}),
	odd("versions.asks-again",
		"A client that does not know the version of the server tries once more in a new session.",
		"After it has disconnected, a client may connect again.", ofVersions, nil).
		In("lifecycle/older-version", "lifecycle/newer-version", "lifecycle/no-version").
		Running(func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			var unsupported *client.UnsupportedVersionError
			if errors.As(err, &unsupported) {
				err = c.Run(ctx)
			}
			return err
		}),
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
	odd("capabilities.none", "The client declares no capability.", optionalName, ofCapabilities, declaring(object{})).
		In(Sampling, Elicitation, RootsSeen, "acts/sampling", "acts/elicitation", "acts/roots").
		Open("roots.*", "sampling.*", "elicitation.*", "content.*", "schema.*", "progress.*", "cancellation.*",
			"base.*", "meta.*", "lifecycle.*"),
	odd("capabilities.only-roots", "The client declares roots alone.", optionalName, ofCapabilities,
		declaring(object{"roots": object{"listChanged": true}})).In(Sampling, Elicitation, RootsSeen, "acts/roots").
		Open("sampling.*", "elicitation.*", "content.*", "schema.*", "progress.*", "cancellation.*", "base.*",
			"meta.*", "lifecycle.*"),
	odd("capabilities.only-sampling", "The client declares sampling alone.", optionalName, ofCapabilities,
		declaring(object{"sampling": object{}})).In(Sampling, Elicitation, RootsSeen, "acts/sampling").
		Open("roots.*", "elicitation.*", "schema.*", "lifecycle.*"),
	odd("capabilities.only-elicitation", "The client declares elicitation alone.", optionalName, ofCapabilities,
		declaring(object{"elicitation": object{}})).In(Sampling, Elicitation, RootsSeen, "acts/elicitation").
		Open("roots.*", "sampling.*", "content.*", "schema.*", "base.*", "lifecycle.*"),
	odd("capabilities.still-roots",
		"roots is declared with listChanged: false, and changes of the roots are not announced.",
		"listChanged says whether the client will emit notifications.", "client/roots#capabilities",
		All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{"listChanged": false} }),
			Dropping(Calls("notifications/roots/list_changed")))).In(RootsSeen, "acts/roots", "acts/root-folder").
		Open("roots.*", "schema.*", "lifecycle.*"),
	odd("capabilities.plain-roots", "roots is declared as an empty object, and changes of the roots are not announced.",
		"listChanged is optional.", "schema#clientcapabilities",
		All(Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }),
			Dropping(Calls("notifications/roots/list_changed")))).In(RootsSeen, "acts/roots", "acts/root-folder").
		Open("roots.*", "schema.*", "lifecycle.*"),
	odd("capabilities.filled", "The capabilities sampling and elicitation have members.",
		"The schema has them as objects of any members.", "schema#clientcapabilities",
		Changing(func(o *client.Options) {
			o.Capabilities["sampling"] = object{"com.example.models": list{"small"}}
			o.Capabilities["elicitation"] = object{"com.example.forms": true}
		})).In(Sampling, Elicitation),
	odd("capabilities.own", "The client declares experimental capabilities, and one that the schema does not have.",
		"This is not a closed set: any client can define its own, additional capabilities.",
		"schema#clientcapabilities", Changing(func(o *client.Options) {
			o.Capabilities["experimental"] = object{"com.example/notes": object{},
				"plain": object{"depth": list{1, object{}}}}
			o.Capabilities["com.example.workspace"] = object{"readOnly": true}
		})),
}

// nothingUsed are the requirements that a client leaves open which uses no feature.
var nothingUsed = []string{"*"}

var sessionOddities = []Oddity{
	odd("use.nothing", "The client leaves after the handshake.",
		"One side ends the session when it likes to; nothing has to be used before.", ofShutdown,
		using(func(context.Context, *client.Session, client.Call) error { return nil })).
		In(Requests, "http/delete", LostSession, "stdio/shutdown", "capabilities/none").Open(nothingUsed...),
	odd("use.pings", "The client sends pings and nothing else, one each second.", optionalUse,
		"basic/utilities/ping#overview", using(func(ctx context.Context, _ *client.Session, call client.Call) error {
			for range 4 {
				if _, err := call(ctx, "ping", nil); err != nil || !Passes(ctx, time.Second) {
					return err
				}
			}
			return nil
		})).In(Requests, "http/delete", LostSession).Open(nothingUsed...),
	odd("use.waits", "The client sends nothing after the handshake, stays for five seconds and leaves.", optionalUse,
		"basic/lifecycle#operation", using(func(ctx context.Context, _ *client.Session, _ client.Call) error {
			Passes(ctx, 5*time.Second)
			return nil
		})).In("http/listening", "http/delete").Open(nothingUsed...),
	odd("use.backwards", "Prompts, resources and tools are used in this order, and the log level is set last.",
		"The operation phase has no order.", "basic/lifecycle#operation",
		using(func(ctx context.Context, s *client.Session, call client.Call) error {
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
		})).In("lists/pages").Open(nothingUsed...),
	odd("use.slowly", "Half a second passes before each message.", "No page gives a pace.", "basic/lifecycle#operation",
		Pausing(func(m *wire.Message) bool { return m.Method != "" && m.Method != "initialize" },
			100*time.Millisecond)),
	odd("sessions.probe",
		"The client opens a session only to see whether the server is there, and works in a second one.",
		"A server can handle several connections, and a session may end after the handshake.", ofShutdown, nil).
		In(LostSession, "http/delete", "stdio/shutdown").Running(func(ctx context.Context, c client.Standalone) error {
		probe := c
		probe.Use = func(context.Context, *client.Session, client.Call) error { return nil }
		probe.Extra = nil
		_ = probe.Run(ctx)
		return c.Run(ctx)
	}),
	odd("sessions.two", "The client works in two sessions at the same time.",
		"A server can handle several connections, and each stands for itself.", "basic/transports#streamable-http",
		nil).In(LostSession, CutStream, "lists/pages", Requests, "http/no-session").
		Running(func(ctx context.Context, c client.Standalone) error {
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
		}),
	odd("sessions.declares-once",
		"In a session that replaces a lost one, the client declares no capability and uses none.",
		"Capabilities are negotiated in each session.", "basic/lifecycle#capability-negotiation",
		func(c *client.Standalone) {
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
		}).Only(OverHTTP).In(LostSession, "http/lost-again", "lists/lost-session").
		Open("roots.*", ids.LifecycleCapabilityClientEmitsRootsListChanged),
	odd("sessions.in-turn", "The client works in two sessions, one after the other.",
		"After a session a client may begin another one.", ofShutdown, nil).In(LostSession, "lists/pages").
		Running(func(ctx context.Context, c client.Standalone) error {
			if err := c.Run(ctx); err != nil {
				return err
			}
			c.UserActions = ""
			return c.Run(ctx)
		}),
	odd("sessions.retry", "A client whose session fails tries once more after a second.",
		"A client may connect again after a failure.", "basic/lifecycle#error-handling", nil).
		In("lifecycle/refused", "stdio/exits-early", "lifecycle/no-version").
		Running(func(ctx context.Context, c client.Standalone) error {
			err := c.Run(ctx)
			if err != nil && Passes(ctx, time.Second) {
				c.UserActions = ""
				err = c.Run(ctx)
			}
			return err
		}),
	odd("exit.always-zero", "The client ends with success whatever has happened.",
		"No page gives exit codes of clients.", ofShutdown, nil).
		In("lifecycle/refused", "stdio/exits-early", "lifecycle/no-version", "auth/other-issuer").
		Running(func(ctx context.Context, c client.Standalone) error {
			_ = c.Run(ctx)
			return nil
		}),
	odd("exit.always-one", "The client ends with a failure whatever has happened.",
		"No page gives exit codes of clients.", ofShutdown, nil).
		In("lifecycle/refused", "stdio/exits-early", "lifecycle/no-version").
		Open(ids.BaseSupportOtherComponents, ids.LifecycleErrorMissingCapability).
		Running(func(ctx context.Context, c client.Standalone) error {
			_ = c.Run(ctx)
			return ErrDead
		}),
	odd("timeouts.short", "The client waits a third of a second for an answer, and cancels what takes longer.",
		"Timeouts are the client's choice, and may be different for each request.", ofTimeouts, Impatient).
		In("time/silence", "time/silent-tool", "time/slow", "time/endless-progress"),
	odd("timeouts.leave", "The client leaves when an answer takes longer than a second.",
		"A sender should cancel what it gives up; the end of the session also tells the server that nobody waits.",
		ofTimeouts, nil).In("time/silence", "time/silent-tool", "time/endless-progress").
		Open(ids.LifecycleTimeoutCancel, ids.HTTPClientCancelExplicit, ids.CancellationSameDirection,
			ids.CancellationInProgress, ids.CancellationLateResponse, ids.SchemaCancelledNotification).
		Running(func(ctx context.Context, c client.Standalone) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			c.Timeout = time.Second
			Dropping(Calls("notifications/cancelled"))(&c)
			Sending(Calls("notifications/cancelled"), func(*wire.Message, outgoing) []outgoing {
				cancel(ErrDead)
				return nil
			})(&c)
			return c.Run(ctx)
		}),
	odd("exit.at-errors", "The client ends at the first error with which the server answers a request.",
		"A client may do anything with an error.", "basic/lifecycle#error-handling", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Kind == wire.ErrorResponse && e.Msg.ID.Usable()
		})).In("features/errors", "hostile/lists").Open(ids.BaseErrorDataFree),
	odd("exit.at-once", "The client sends a request and leaves without waiting for the answer.",
		"Either side may end the connection at any time during operation.", ofShutdown,
		Further("tools", func(ctx context.Context, s *client.Session) {
			_, _ = s.Start(ctx, "tools/call", object{"name": "slow", "arguments": object{"seconds": 5}})
		})).In("http/delete", "stdio/shutdown"),
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
