// Package wire holds what crosses a connection: JSON-RPC messages as they were
// sent, with their faults; the trace of all events of a run; and the conversation
// in a log, which pairs requests with responses.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// Party is one side of a connection.
type Party string

// The two sides, and the party that issues tokens to the one for the other. In a log, it is the server of what asks it.
const (
	Client              Party = "client"
	Server              Party = "server"
	AuthorizationServer Party = "authorization-server"
)

// Peer returns the other side.
func (p Party) Peer() Party {
	if p == Client {
		return Server
	}
	return Client
}

// Kind of a JSON-RPC message.
type Kind uint8

// The kinds. Invalid is anything that is not recognisably one of the others.
const (
	Invalid Kind = iota
	Request
	Notification
	Result
	ErrorResponse
	Batch
)

var kindNames = [...]string{"invalid message", "request", "notification", "result", "error", "batch"}

func (k Kind) String() string { return kindNames[k] }

// IssueCode names a fault of a message's text or envelope.
type IssueCode string

// Faults of the JSON text.
const (
	NotJSON         IssueCode = "not-json"
	TooDeep         IssueCode = "too-deep"  // legal, but not read: see MaxDepth
	TooLarge        IssueCode = "too-large" // legal, but not read: see MaxValues and MaxDecoded
	DuplicateMember IssueCode = "duplicate-member"
	InvalidUTF8     IssueCode = "invalid-utf8"
	LoneSurrogate   IssueCode = "lone-surrogate"
	ByteOrderMark   IssueCode = "byte-order-mark"
)

// Faults of the JSON-RPC envelope.
const (
	NotObject        IssueCode = "not-object"
	IsBatch          IssueCode = "batch"
	JSONRPCMissing   IssueCode = "jsonrpc-missing"
	JSONRPCWrong     IssueCode = "jsonrpc-wrong"
	IDMissing        IssueCode = "id-missing"
	IDNull           IssueCode = "id-null"
	IDType           IssueCode = "id-type"
	MethodType       IssueCode = "method-type"
	ParamsType       IssueCode = "params-type"
	ResultType       IssueCode = "result-type"
	ErrorType        IssueCode = "error-type"
	ErrorCodeMissing IssueCode = "error-code-missing"
	ErrorCodeType    IssueCode = "error-code-type"
	ErrorTextMissing IssueCode = "error-message-missing"
	ErrorTextType    IssueCode = "error-message-type"
	BothOutcomes     IssueCode = "result-and-error"
	NoOutcome        IssueCode = "no-method-result-or-error"
	MixedEnvelope    IssueCode = "method-and-outcome"
	NotificationID   IssueCode = "notification-with-id"
)

// Issue is one fault of a message.
type Issue struct {
	Code    IssueCode
	Pointer string // JSON pointer of the place
	Detail  string // one clause in plain words
}

// ID of a request. Numbers keep their spelling, strings are written anew.
type ID struct {
	raw    string // JSON text; empty when absent
	str    bool
	number bool
}

// StringID returns an id that is a string.
func StringID(s string) ID {
	if strings.ContainsFunc(s, escapes) {
		return ID{raw: string(RawSeparators([]byte(jsonText(s)))), str: true}
	}
	return ID{raw: `"` + s + `"`, str: true}
}

// escapes reports whether a character is not spelled as it is in a string of JSON; it may not be UTF-8.
func escapes(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }

// value returns the id as it is decoded.
func (id ID) value() any {
	if !id.str {
		return json.Number(id.raw)
	}
	d := decoder{raw: id.raw}
	s, _ := d.str() // which it was
	return s
}

// IntID returns an id that is an integer.
func IntID(n int64) ID { return ID{raw: strconv.FormatInt(n, 10), number: true} }

// String returns the id as JSON text, or "" when there is none.
func (id ID) String() string { return id.raw }

// Present reports whether the message carries an id member, if only null.
func (id ID) Present() bool { return id.raw != "" }

// Null reports whether the id is the JSON null.
func (id ID) Null() bool { return id.raw == "null" }

// Usable reports whether the id is a string or a number.
func (id ID) Usable() bool { return id.str || id.number }

// Key returns a text that is equal for equal ids: 1 and 1.0 share one, 1 and
// "1" do not.
func (id ID) Key() string {
	if !id.number {
		return id.raw
	}
	if r, ok := integer(json.Number(id.raw)); ok {
		return r
	}
	return id.raw
}

// Loose returns an equal text for ids that differ at most in their JSON type. It returns "" for an unusable id.
func (id ID) Loose() string {
	if !id.Usable() {
		return ""
	}
	return strings.Trim(id.Key(), `"`)
}

// Resembles reports whether two ids differ at most in their JSON type: 1 and "1".
func (id ID) Resembles(other ID) bool {
	return id.Usable() && other.Usable() && id.Loose() == other.Loose()
}

// maxZeros bounds how many zeros are written for an exponent: those of 1e999999999
// would fill the machine's memory.
const maxZeros = 400

// integer returns the canonical spelling of n if its value is an integer. It
// takes time in proportion to the spelling, not to the value.
func integer(n json.Number) (string, bool) {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			s = "0"
		}
		return s, true
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	exponent := 0
	if power != "" {
		// The nearest int stands for an exponent out of range.
		exponent, _ = strconv.Atoi(power)
	}
	trimmed := strings.TrimRight(digits, "0")
	// A text is far shorter than an int is large; the sums cannot overflow but
	// at the ends of the range.
	const far = 1 << 30
	exponent = max(-far, min(far, exponent)) - len(fraction) + len(digits) - len(trimmed)
	switch {
	case exponent < 0:
		return "", false
	case exponent > maxZeros:
		return sign + trimmed + "e" + strconv.Itoa(exponent), true
	}
	return sign + trimmed + strings.Repeat("0", exponent), true
}

// Error is the error member of a response, as far as it could be read.
type Error struct {
	Code    int64
	HasCode bool // Code is an integer that fits
	Message string
	Data    any
}

// Message is one JSON-RPC message as it was sent. It is not changed once parsed.
type Message struct {
	Raw    []byte
	Kind   Kind
	plain  bool // what Value returns follows from the other members
	ID     ID
	Method string
	Params any // decoded; nil when absent
	Result any
	Error  *Error
	Issues []Issue
	Batch  []*Message // the members of a batch

	whole   any    // see Value
	weight  int    // of what is decoded, in memory
	payload string // the spelling of params or result, if it may be shared with other messages
}

// decoding is held for texts from largeText on: decoded they take up to forty times their
// length, and several at a time would for what may be thrown away at once.
var decoding sync.Mutex

const largeText = 64 << 10

// envelopes is room for the members of messages while they are read.
var envelopes = sync.Pool{New: func() any { return make(map[string]any) }}

// Parse reads one message. It never fails: Issues holds what is wrong, and the
// other members what can be understood. The bytes belong to the message from then
// on and must not be changed: its strings are parts of them.
func Parse(raw []byte) *Message { return parse(raw, nil) }

// parse is Parse, which takes from earlier messages what they said as well.
func parse(raw []byte, said *said) *Message {
	m := &Message{Raw: raw}
	if len(raw) >= largeText {
		decoding.Lock() // what is thrown away of one is there for the next
		defer decoding.Unlock()
	}
	// A copy would double what a trace holds.
	d := decoder{raw: unsafe.String(unsafe.SliceData(raw), len(raw)), said: said,
		members: envelopes.Get().(map[string]any)}
	v, err := d.decode()
	m.Issues, m.weight = d.issues, d.weight-d.shared
	switch {
	case errors.Is(err, ErrDepth):
		m.issue(TooDeep, "", err.Error())
		return m
	case errors.Is(err, ErrValues), errors.Is(err, ErrDecoded):
		m.issue(TooLarge, "", err.Error())
		return m
	case err != nil:
		m.issue(NotJSON, "", err.Error())
		return m
	}
	m.read(v)
	if m.plain = m.followsFrom(d.members); m.plain {
		m.whole, m.payload = nil, d.payload
		m.weight -= mapWeight + groupWeight
		clear(d.members)
		envelopes.Put(d.members)
	}
	if m.ID.str {
		m.weight += len(m.ID.raw)
	}
	return m
}

// followsFrom reports whether the message has just these members, without a fault, so that they need not be kept.
func (m *Message) followsFrom(members map[string]any) bool {
	if len(m.Issues) > 0 {
		return false
	}
	switch m.Kind {
	case Request, Notification:
		n := 2
		if m.Kind == Request {
			n++
		}
		if m.Params != nil {
			n++
		}
		return len(members) == n
	case Result:
		return len(members) == 3
	}
	return false
}

// Value returns the whole text, decoded; nil when it is not JSON. It must not be changed.
func (m *Message) Value() any {
	if !m.plain {
		return m.whole
	}
	members := map[string]any{"jsonrpc": "2.0"}
	if m.Kind != Notification {
		members["id"] = m.ID.value()
	}
	if m.Kind == Result {
		members["result"] = m.Result
		return members
	}
	members["method"] = m.Method
	if m.Params != nil {
		members["params"] = m.Params
	}
	return members
}

// Payload returns how the params or the result of a message are spelled, "" if it has none. It is not known of a
// message that was not parsed for a trace, has a fault or holds more than a message does.
func (m *Message) Payload() (text string, known bool) {
	return m.payload, m.plain && (m.payload != "" || m.Params == nil && m.Result == nil)
}

func (m *Message) issue(code IssueCode, ptr, detail string) {
	m.Issues = append(m.Issues, Issue{code, ptr, detail})
}

// Has reports whether the message has an issue of one of the codes.
func (m *Message) Has(codes ...IssueCode) bool {
	for _, i := range m.Issues {
		for _, c := range codes {
			if i.Code == c {
				return true
			}
		}
	}
	return false
}

// IsResponse reports whether the message is a result or an error.
func (m *Message) IsResponse() bool { return m.Kind == Result || m.Kind == ErrorResponse }

// maxBatch bounds how many members of a batch are read.
const maxBatch = 1000

func (m *Message) read(v any) {
	m.whole = v
	switch v := v.(type) {
	case map[string]any:
		m.readObject(v)
	case []any:
		m.Kind = Batch
		m.issue(IsBatch, "", "the message is an array, which is a JSON-RPC batch")
		for _, item := range v[:min(len(v), maxBatch)] {
			b := &Message{Raw: []byte(jsonText(item))} // the members' own spelling is lost
			if _, nested := item.([]any); nested {
				b.whole = item
				b.issue(NotObject, "", "the message is an array, not an object")
			} else {
				b.read(item)
			}
			m.Batch = append(m.Batch, b)
		}
	default:
		m.issue(NotObject, "", "the message is "+TypeName(v)+", not an object")
	}
}

func (m *Message) readObject(o map[string]any) {
	if version, ok := o["jsonrpc"]; !ok {
		m.issue(JSONRPCMissing, "/jsonrpc", `member "jsonrpc" is missing`)
	} else if version != "2.0" {
		m.issue(JSONRPCWrong, "/jsonrpc", `member "jsonrpc" is `+Show(version)+`, not "2.0"`)
	}
	id, hasID := o["id"]
	if hasID {
		m.ID = ReadID(id)
	}
	method, hasMethod := o["method"]
	result, hasResult := o["result"]
	rpcErr, hasError := o["error"]
	// Some libraries write both outcomes and leave the other one null. That is
	// still both members.
	switch {
	case hasResult && hasError:
		m.issue(BothOutcomes, "", `the response has both "result" and "error"`)
	case hasMethod && (hasResult || hasError):
		m.issue(MixedEnvelope, "", `the message has "method" together with "result" or "error"`)
	case !hasMethod && !hasResult && !hasError:
		m.issue(NoOutcome, "", `the message has none of "method", "result" and "error"`)
	}
	switch {
	case hasMethod && !hasResult && !hasError:
		m.readCall(o, method, hasID)
	case hasError && (rpcErr != nil || !hasResult):
		m.Kind = ErrorResponse
		m.readError(rpcErr)
		m.responseID(id, hasID, "error")
	case hasResult:
		m.Kind = Result
		m.Result = result
		if _, ok := result.(map[string]any); !ok {
			m.issue(ResultType, "/result", `member "result" is `+TypeName(result)+`, not an object`)
		}
		m.responseID(id, hasID, "result")
	}
}

func (m *Message) readCall(o map[string]any, method any, hasID bool) {
	name, ok := method.(string)
	if !ok {
		m.issue(MethodType, "/method", `member "method" is `+TypeName(method)+`, not a string`)
		return
	}
	m.Method = name
	m.Kind = Notification
	if hasID {
		m.Kind = Request
		if strings.HasPrefix(name, "notifications/") {
			m.issue(NotificationID, "/id", "the notification "+Quote(name, 60)+" carries an id")
		}
		if m.ID.Null() {
			m.issue(IDNull, "/id", `the request's "id" is null`)
		} else if !m.ID.Usable() {
			m.issue(IDType, "/id", `the request's "id" is `+Show(o["id"])+`, neither a string nor an integer`)
		}
	}
	if params, ok := o["params"]; ok {
		m.Params = params
		if _, isObject := params.(map[string]any); !isObject {
			m.issue(ParamsType, "/params", `member "params" is `+TypeName(params)+`, not an object`)
		}
	}
}

// ReadID returns a decoded value as an id. It is usable only if the value is a
// string or an integer.
func ReadID(v any) ID {
	switch v := v.(type) {
	case string:
		return StringID(v)
	case json.Number:
		_, whole := integer(v)
		return ID{raw: string(v), number: whole}
	case nil:
		return ID{raw: "null"}
	}
	return ID{raw: TypeName(v)}
}

// responseID records what is wrong about the id of a response. The id of an error
// may be null or absent if the request's id could not be read: the rules find out
// whether that is so.
func (m *Message) responseID(id any, hasID bool, what string) {
	switch {
	case !hasID:
		m.issue(IDMissing, "/id", "the "+what+` has no "id"`)
	case m.ID.Null():
		m.issue(IDNull, "/id", "the "+what+`'s "id" is null`)
	case !m.ID.Usable():
		m.issue(IDType, "/id", "the "+what+`'s "id" is `+Show(id)+`, neither a string nor an integer`)
	}
}

func (m *Message) readError(v any) {
	m.Error = &Error{}
	o, ok := v.(map[string]any)
	if !ok {
		m.issue(ErrorType, "/error", `member "error" is `+TypeName(v)+`, not an object`)
		return
	}
	code, ok := o["code"]
	if !ok {
		m.issue(ErrorCodeMissing, "/error/code", `the error has no "code"`)
	} else if n, isNumber := code.(json.Number); !isNumber {
		m.issue(ErrorCodeType, "/error/code", `the error's "code" is `+Show(code)+`, not an integer`)
	} else if whole, isWhole := integer(n); !isWhole {
		m.issue(ErrorCodeType, "/error/code", `the error's "code" is `+Show(code)+`, not an integer`)
	} else {
		value, err := strconv.ParseInt(whole, 10, 64)
		m.Error.Code, m.Error.HasCode = value, err == nil
	}
	text, ok := o["message"]
	if !ok {
		m.issue(ErrorTextMissing, "/error/message", `the error has no "message"`)
	} else if m.Error.Message, ok = text.(string); !ok {
		m.issue(ErrorTextType, "/error/message", `the error's "message" is `+TypeName(text)+`, not a string`)
	}
	m.Error.Data = o["data"]
}

// TypeName names the JSON type of a decoded value, with its article.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number, float64, int, int64:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}

// Show returns a decoded value as short JSON text for a message.
func Show(v any) string {
	const most = 80
	if s, ok := v.(string); ok {
		return Quote(s, most)
	}
	text, shortened := firstRunes(jsonText(v), most)
	if shortened {
		text += "…"
	}
	return text
}

// RawSeparators undoes what package json does to U+2028 and U+2029 in JSON text:
// they are line ends in JavaScript alone, and JSON has them as they are.
func RawSeparators(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u202`)) {
		return text
	}
	raw := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u2028`)):
			raw, i = append(raw, "\u2028"...), i+5
		case bytes.HasPrefix(rest, []byte(`\u2029`)):
			raw, i = append(raw, "\u2029"...), i+5
		case text[i] == '\\' && len(rest) > 1: // so that an escaped backslash hides what follows it
			raw, i = append(raw, rest[:2]...), i+1
		default:
			raw = append(raw, text[i])
		}
	}
	return raw
}

func jsonText(v any) string {
	if n, ok := v.(json.Number); ok {
		return string(n)
	}
	text, err := Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// Marshal is [json.Marshal], but lets <, > and & stand as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// At returns the value under a path of member names, or nil.
func At(v any, path ...string) any {
	for _, name := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}
