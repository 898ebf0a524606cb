// Package transport moves messages between mcpconform and a peer, and records
// everything that crosses in the connection's log: the exact bytes in both directions,
// HTTP heads, SSE fields, processes that start, exit and write to stderr.
// Nothing is normalised on the way.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Names of the transports, as in reports and in the catalogue.
const (
	NameStdio = "stdio"
	NameHTTP  = "http" // Streamable HTTP
	NameSSE   = "sse"  // HTTP+SSE of revision 2024-11-05
	// NameCustom is that of every transport that the specification does not define
	// (basic/transports#custom-transports): [WebSocket], and whatever a [Stdio.Bridge] speaks.
	NameCustom = "custom"
)

// NameOAuth is the transport of a log that does not hold messages of the protocol,
// but the documents and the flow with which a client gets an access token
// (basic/authorization).
const NameOAuth = "oauth"

// Loopback reports whether a host, without a port, is this machine's loopback
// interface.
func Loopback(host string) bool {
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Private reports whether a host, without a port, belongs to a private network.
func Private(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err == nil {
		return ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}

// Outgoing is one message to send.
type Outgoing struct {
	Raw []byte
	// Deliberate lists requirements that the message breaks on purpose.
	Deliberate []string
	// Header adds to or, with an empty value list, removes from the header of
	// the POST that carries the message. It has no effect on stdio.
	Header http.Header
	// Unawaited says that nobody wants to know how the message is taken: over HTTP, the head of the response
	// comes while the sender goes on.
	Unawaited bool
}

// ordinary reports whether a message, parsed, is sent as any client would send it.
func (m Outgoing) ordinary(msg *wire.Message) bool {
	return len(m.Header) == 0 && (msg.Kind == wire.Request || acknowledged(msg))
}

// Conn is the client's end of one connection to a server under test. Incoming
// messages appear in its log.
type Conn interface {
	// Log of the connection.
	Log() *wire.Log
	// Send sends one message and returns its event. Over HTTP a direct answer
	// arrives on that event's stream. An error means that the message did not
	// leave as a whole.
	Send(ctx context.Context, m Outgoing) (*wire.Event, error)
	// Close shuts the connection down in the order that the specification
	// gives and waits until everything that belongs to it has ended.
	Close(ctx context.Context) error
}

// Dialer opens connections to one target.
type Dialer interface {
	// Transport returns the name of the transport.
	Transport() string
	// Dial opens a connection that records to log. It does not initialise it.
	Dial(ctx context.Context, log *wire.Log) (Conn, error)
}

// ErrClosed reports a send on a connection that the peer or we have closed.
var ErrClosed = errors.New("the connection is closed")

// StartError reports a target that could not be started or reached at all.
type StartError struct {
	Target string
	Err    error
	// Process says that the target is a program which did not start.
	Process bool
}

func (e *StartError) Error() string {
	action := "reach"
	if e.Process {
		action = "start"
	}
	return "cannot " + action + " " + e.Target + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// unstarted notes in the log of a connection why there is none, and ends the log.
func unstarted(log *wire.Log, e *StartError) error {
	log.Note("start: " + e.Err.Error())
	log.End()
	return e
}

// TimeoutError reports that something did not happen within a limit of time. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	// Missed says in a clause what did not happen.
	Missed string
	After  time.Duration
	// Start is true for the limit of a start, Start.Wait. Otherwise the limit is that of one answer,
	// Endpoint.Timeout.
	Start bool
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("%s within %v", e.Missed, e.After) }

// Is makes it a context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
