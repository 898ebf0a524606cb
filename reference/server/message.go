package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Error codes of JSON-RPC and of the revision.
const (
	ParseError       = -32700
	InvalidRequest   = -32600
	MethodNotFound   = -32601
	InvalidParams    = -32602
	InternalError    = -32603
	ResourceNotFound = -32002
)

// NoAnswer is the result of a handler that leaves its request unanswered. Over
// HTTP the stream of the request ends without a response.
var NoAnswer any = noAnswer{}

type noAnswer struct{}

// Outgoing is one message on its way to the client.
type Outgoing struct {
	Session *Session
	// Kind tells requests, notifications, results and errors apart.
	Kind wire.Kind
	// Method of a request or notification; empty in a response.
	Method string
	// Answers is the request to which this is the response, or nil. It is nil
	// also in an error about a message that could not be read.
	Answers *Request
	// To is the request on whose HTTP stream the message travels; nil is the
	// listening stream of the session. It has no effect on stdio and on the
	// legacy transport.
	To *Request
	// Message is the JSON-RPC object. A hook may change it freely.
	Message map[string]any
	// Raw, unless nil, is sent instead of Message.
	Raw []byte
	// Delay and Until hold the message back without holding up others: for a
	// time, and until the channel is closed.
	Delay time.Duration
	Until <-chan struct{}
	// Deliberate lists requirements that the message breaks on purpose.
	Deliberate []string
}

// Clone returns a deep copy.
func (o *Outgoing) Clone() *Outgoing {
	c := *o
	c.Message, _ = clone(o.Message).(map[string]any)
	c.Raw = bytes.Clone(o.Raw)
	return &c
}

// Result returns the result object of a response, or nil.
func (o *Outgoing) Result() map[string]any {
	result, _ := o.Message["result"].(map[string]any)
	return result
}

// RPCError returns the error object of a response, or nil.
func (o *Outgoing) RPCError() map[string]any {
	rpcErr, _ := o.Message["error"].(map[string]any)
	return rpcErr
}

// Params returns the params of a request or notification, or nil.
func (o *Outgoing) Params() map[string]any {
	params, _ := o.Message["params"].(map[string]any)
	return params
}

// text returns the JSON text of the message, to which the caller may append.
func (o *Outgoing) text() ([]byte, error) {
	if o.Raw != nil {
		return slices.Clip(o.Raw), nil
	}
	text, err := wire.Marshal(o.Message)
	if err != nil {
		return nil, fmt.Errorf("write a message: %w", err)
	}
	return text, nil
}

// clone copies a tree of objects and arrays.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		for name, member := range c {
			c[name] = clone(member)
		}
		return c
	case []any:
		c := slices.Clone(v)
		for i, item := range c {
			c[i] = clone(item)
		}
		return c
	}
	return v
}

// rawID returns the id as it was spelled, null when there is none.
func rawID(id wire.ID) json.RawMessage {
	if !id.Usable() {
		return json.RawMessage("null")
	}
	return json.RawMessage(id.String())
}

func errorObject(e *wire.Error) map[string]any {
	object := map[string]any{"code": e.Code, "message": e.Message}
	if e.Data != nil {
		object["data"] = e.Data
	}
	return object
}

func response(r *Request, result any, rpcErr *wire.Error) *Outgoing {
	out := &Outgoing{
		Session: r.Session, Kind: wire.Result, Answers: r, To: r,
		Message: map[string]any{"jsonrpc": "2.0", "id": rawID(r.ID)},
	}
	if rpcErr != nil {
		out.Kind = wire.ErrorResponse
		out.Message["error"] = errorObject(rpcErr)
	} else {
		out.Message["result"] = result
	}
	return out
}

func notification(s *Session, to *Request, method string, params map[string]any) *Outgoing {
	out := &Outgoing{
		Session: s, Kind: wire.Notification, Method: method, To: to,
		Message: map[string]any{"jsonrpc": "2.0", "method": method},
	}
	if params != nil {
		out.Message["params"] = params
	}
	return out
}

// refusal is the answer to a message that is not valid.
type refusal struct {
	rpcErr wire.Error
	id     wire.ID
	// unanswered says that the message is a notification or response, which is never
	// answered (basic/index#notifications). Over HTTP its POST is refused.
	unanswered bool
}

func (f *refusal) outgoing(s *Session) *Outgoing {
	return &Outgoing{
		Session: s, Kind: wire.ErrorResponse,
		Message: map[string]any{"jsonrpc": "2.0", "id": rawID(f.id), "error": errorObject(&f.rpcErr)},
	}
}

// refuse returns the refusal of a message that is not valid, or nil.
func (b *Behaviour) refuse(m *wire.Message) *refusal {
	if m.Kind == wire.Batch && b.Batches || b.Valid != nil && b.Valid(m) {
		return nil
	}
	if m.Has(wire.NotJSON, wire.TooDeep, wire.InvalidUTF8) {
		return &refusal{rpcErr: wire.Error{Code: ParseError, Message: "Parse error: " + m.Issues[0].Detail}}
	}
	for _, issue := range m.Issues {
		switch issue.Code {
		case wire.DuplicateMember, wire.LoneSurrogate, wire.ByteOrderMark:
			continue // it can be read
		case wire.ErrorCodeMissing, wire.ErrorCodeType, wire.ErrorTextMissing, wire.ErrorTextType, wire.ErrorType:
			continue // it is an error of the client, even if malformed
		case wire.IDMissing, wire.IDNull:
			if m.Kind == wire.ErrorResponse {
				continue // it may be about a message that the client could not read
			}
		}
		f := &refusal{rpcErr: wire.Error{Code: InvalidRequest, Message: "Invalid request: " + issue.Detail}, id: m.ID}
		_, hasMethod := wire.At(m.Value(), "method").(string)
		f.unanswered = m.Kind == wire.Notification || m.IsResponse() && !hasMethod || hasMethod && !m.ID.Present()
		return f
	}
	return nil
}

// invalid returns an error about the params of a request.
func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{Code: InvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}

// oneLine makes a text fit for an error message, which is one short sentence
// (schema#jsonrpcerror).
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}
