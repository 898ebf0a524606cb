package judge

import (
	"regexp"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// envelope maps the faults of a message's text and envelope to the requirement
// that each of them breaks (basic#messages and JSON-RPC 2.0).
var envelope = map[wire.IssueCode]string{
	wire.NotJSON:          ids.BaseJSONWellFormed,
	wire.LoneSurrogate:    ids.BaseJSONWellFormed,
	wire.ByteOrderMark:    ids.BaseJSONWellFormed,
	wire.DuplicateMember:  ids.BaseJSONUniqueNames,
	wire.InvalidUTF8:      ids.BaseMessageUTF8,
	wire.NotObject:        ids.BaseJSONObject,
	wire.IsBatch:          ids.BaseBatchNotSent,
	wire.JSONRPCMissing:   ids.BaseJSONRPCVersion,
	wire.JSONRPCWrong:     ids.BaseJSONRPCVersion,
	wire.MethodType:       ids.BaseJSONRPCMethodString,
	wire.ParamsType:       ids.BaseJSONRPCParamsObject,
	wire.NotificationID:   ids.BaseNotificationNoID,
	wire.BothOutcomes:     ids.BaseResponseNotBoth,
	wire.NoOutcome:        ids.BaseResponseResultOrError,
	wire.ResultType:       ids.BaseResponseResultObject,
	wire.ErrorType:        ids.BaseErrorObject,
	wire.ErrorCodeMissing: ids.BaseErrorCodePresent,
	wire.ErrorCodeType:    ids.BaseErrorCodeInteger,
	wire.ErrorTextMissing: ids.BaseErrorMessagePresent,
	wire.ErrorTextType:    ids.BaseErrorMessageString,
	wire.MixedEnvelope:    ids.SchemaJSONRPCMessage,
}

// Requirements that every message of a kind exercises, whatever its content.
var (
	exercisedByAny = []string{ids.BaseJSONWellFormed, ids.BaseJSONUniqueNames, ids.BaseMessageUTF8,
		ids.BaseJSONObject, ids.BaseBatchNotSent, ids.BaseJSONRPCVersion, ids.SchemaJSONRPCMessage}
	exercisedByKind = map[wire.Kind][]string{
		wire.Request: {
			ids.BaseJSONRPCMethodString, ids.BaseRequestIDPresent, ids.BaseRequestIDType, ids.BaseRequestIDNotNull,
		},
		wire.Notification: {ids.BaseJSONRPCMethodString, ids.BaseNotificationNoID},
		wire.Result: {
			ids.BaseResponseResultOrError, ids.BaseResponseNotBoth, ids.BaseResponseResultObject,
		},
		wire.ErrorResponse: {
			ids.BaseResponseResultOrError, ids.BaseResponseNotBoth, ids.BaseErrorObject, ids.BaseErrorCodePresent,
			ids.BaseErrorCodeInteger, ids.BaseErrorMessagePresent, ids.BaseErrorMessageString,
		},
	}
)

var envelopeRules = []Rule{{
	Name: "envelope",
	Requirements: []string{ids.BaseJSONWellFormed, ids.BaseJSONUniqueNames, ids.BaseMessageUTF8, ids.BaseJSONObject,
		ids.BaseBatchNotSent, ids.BaseJSONRPCVersion, ids.SchemaJSONRPCMessage, ids.BaseJSONRPCMethodString,
		ids.BaseJSONRPCParamsObject, ids.BaseJSONRPCRPCPrefix, ids.BaseRequestIDPresent, ids.BaseRequestIDType,
		ids.BaseRequestIDNotNull, ids.BaseNotificationNoID, ids.BaseResponseResultOrError, ids.BaseResponseNotBoth,
		ids.BaseResponseResultObject, ids.BaseErrorObject, ids.BaseErrorCodePresent, ids.BaseErrorCodeInteger,
		ids.BaseErrorMessagePresent, ids.BaseErrorMessageString, ids.BaseResponseIDEcho, ids.BaseErrorReservedCodes,
		ids.BaseErrorMessageConcise},
	Judge: judgeEnvelope,
}}

func judgeEnvelope(c *Conversation, rec *Recorder) {
	long := make(map[wire.Party][][]byte) // messages that an error may quote
	for _, e := range c.Messages {
		var broken map[string]bool
		if len(e.Msg.Issues) > 0 {
			broken = make(map[string]bool)
		}
		report := func(id, message string) {
			broken[id] = true
			rec.Fail(id, e.From, message, e)
		}
		for _, issue := range e.Msg.Issues {
			switch id := envelopeRequirement(c, e, issue.Code); {
			case id == "", cutShort(e):
			case issue.Code == wire.LoneSurrogate:
				broken[id] = true
				rec.Warn(id, e.From, issue.Detail+atPointer(issue), e)
			case issue.Code == wire.IsBatch && c.Older():
				broken[id] = true // an accepted batch does not meet the requirement either
			case isOtherText(c, e, issue.Code):
				// Text that was never meant as a message breaks the purity of
				// stdout, not the form of messages: stdio.go judges it.
			default:
				report(id, issue.Detail+atPointer(issue))
			}
		}
		if len(e.Raw) > conciseMessage/2 && len(long[e.From]) < maxLong {
			long[e.From] = append(long[e.From], e.Raw)
		}
		if x := c.Of(e); x != nil {
			judgeErrorCode(e, len(x.Request.Raw), rec)
		} else {
			judgeErrorCode(e, quotedLength(e, long[e.From.Peer()]), rec)
		}
		if e.Msg.Kind != wire.Invalid {
			for _, requirements := range [...][]string{exercisedByKind[e.Msg.Kind], exercisedByAny} {
				for _, id := range requirements {
					if !broken[id] {
						rec.Pass(id, e.From)
					}
				}
			}
		}
		if isRequestMethod(c.Revision, e.Msg) {
			rec.Fail(ids.BaseRequestIDPresent, e.From,
				e.Msg.Method+" is the method of a request, but the message has no id", e)
		}
		if e.Msg.Params != nil && !broken[ids.BaseJSONRPCParamsObject] {
			rec.Pass(ids.BaseJSONRPCParamsObject, e.From)
		}
		if strings.HasPrefix(e.Msg.Method, "rpc.") {
			rec.Fail(ids.BaseJSONRPCRPCPrefix, e.From, "the method name "+wire.Quote(e.Msg.Method, 60)+" is reserved",
				e)
		} else if e.Msg.Method != "" {
			rec.Pass(ids.BaseJSONRPCRPCPrefix, e.From)
		}
	}
}

// atPointer names the place of an issue within the message, or returns "".
func atPointer(i wire.Issue) string {
	if i.Pointer == "" || i.Pointer[0] != '/' {
		return ""
	}
	return " (at " + i.Pointer + ")"
}

// envelopeRequirement returns the requirement that an issue breaks, or "".
func envelopeRequirement(c *Conversation, e *wire.Event, code wire.IssueCode) string {
	m := e.Msg
	switch code {
	case wire.IDNull:
		if m.Has(wire.NotificationID) {
			return "" // the fault is that it has an id at all
		}
		if m.Kind == wire.Request {
			return ids.BaseRequestIDNotNull
		}
		return lostID(c, e)
	case wire.IDMissing:
		return lostID(c, e)
	case wire.IDType:
		if m.Kind == wire.Request {
			return ids.BaseRequestIDType
		}
		if asked, ok := c.faults[e.From.Peer()].otherIDs[m.ID.Key()]; ok && asked < e.Seq {
			return "" // it repeats what stood in the request, which JSON-RPC 2.0 advises against and allows
		}
		return ids.BaseResponseIDEcho
	}
	return envelope[code]
}

// isRequestMethod reports whether a message without an id has the method of a
// request.
func isRequestMethod(revision *schema.Revision, m *wire.Message) bool {
	if m.Kind != wire.Notification {
		return false
	}
	_, byClient := revision.Request(schema.Client, m.Method)
	_, byServer := revision.Request(schema.Server, m.Method)
	return byClient || byServer
}

// cutShort reports whether mcpconform itself did not read a message to its end:
// because of a limit, or because it was ending the process.
func cutShort(e *wire.Event) bool { return e.Dropped > 0 || transport.CutOff(e) }

// lostID returns what a response without a usable id breaks, or "". JSON-RPC 2.0
// section 5 wants a null id for input whose id could not be read. The body of an
// HTTP answer that refuses a message may leave it out
// (basic/transports#sending-messages-to-the-server).
func lostID(c *Conversation, e *wire.Event) string {
	if e.Msg.Kind == wire.Result {
		if asked := c.faults[e.From.Peer()].nullID; asked >= 0 && asked < e.Seq && e.Msg.ID.Null() {
			return "" // it repeats the null id of a request
		}
		return ids.BaseResponseIDEcho
	}
	if c.answersUnreadable(e) {
		return ""
	}
	if c.Transport != "stdio" && refusedStatus(c, e) {
		return ""
	}
	return ids.BaseResponseIDEcho
}

// refusedStatus reports whether the message came as the body of an HTTP error.
func refusedStatus(c *Conversation, e *wire.Event) bool {
	head := c.Head(e)
	return head != nil && head.Seq < e.Seq && head.HTTP.Status >= 400
}

// isOtherText reports whether a line on stdout is text that was never meant as
// a message.
func isOtherText(c *Conversation, e *wire.Event, code wire.IssueCode) bool {
	if c.Transport != "stdio" || code != wire.NotJSON && code != wire.NotObject {
		return false
	}
	return !looksLikeMessage(e.Raw)
}

// looksLikeMessage reports whether bytes that are not a message begin like one.
func looksLikeMessage(raw []byte) bool {
	for _, b := range raw {
		switch b {
		case ' ', '\t', '\r':
		case '{':
			return true
		default:
			return false
		}
	}
	return false
}

// specified lists the codes that JSON-RPC 2.0 or MCP give a meaning.
var specified = map[int64]bool{-32700: true, -32600: true, -32601: true, -32602: true, -32603: true}

// conciseMessage is how long an error message may be and still be called one
// concise sentence (schema#jsonrpcerror gives no figure).
const conciseMessage = 1000

// maxLong is how many long messages of a party are remembered, as errors may quote them.
const maxLong = 64

// quotedLength returns the length of the longest message that an error without a request holds
// a piece of, or 0.
func quotedLength(e *wire.Event, long [][]byte) int {
	const piece = 16
	most := 0
	for _, raw := range long {
		if len(raw) <= most || e.Msg.Error == nil {
			continue
		}
		for _, at := range []int{len(raw) / 4, len(raw) / 2, 3 * len(raw) / 4} {
			if strings.Contains(e.Msg.Error.Message, string(raw[at:at+piece])) {
				most = len(raw)
				break
			}
		}
	}
	return most
}

// judgeErrorCode judges an error for a message of so many bytes, which it may quote, with
// each of them as an escape.
func judgeErrorCode(e *wire.Event, quotable int, rec *Recorder) {
	if e.Msg.Kind != wire.ErrorResponse || e.Msg.Error == nil || !e.Msg.Error.HasCode {
		return
	}
	code := e.Msg.Error.Code
	reserved := code >= -32768 && code <= -32000
	implementation := code >= -32099 && code <= -32000
	rec.Check(!reserved || implementation || specified[code], ids.BaseErrorReservedCodes, e.From,
		"the error's code "+wire.Show(wire.At(e.Msg.Value(), "error", "code"))+" is reserved and not assigned", e)
	if len(stackFrame.FindAllString(e.Msg.Error.Message, fewFrames)) == fewFrames {
		rec.Fail(ids.BaseErrorMessageConcise, e.From,
			"the error's message is a stack trace in place of one concise sentence", e)
		return
	}
	rec.Check(len(e.Msg.Error.Message) <= conciseMessage+2*quotable, ids.BaseErrorMessageConcise, e.From,
		"the error's message is far longer than one concise sentence", e)
}

// stackFrame is a line of a stack trace, as JavaScript, Java and C#, Python, and Go print it, and
// fewFrames how many of them make one.
var stackFrame = regexp.MustCompile(`(?m)^\s+at \S.*[(:]|^\s*File ".+", line \d+|^\s+\S+\.go:\d+`)

const fewFrames = 3
