package judge

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var contentRules = []Rule{
	{
		Name: "content",
		Requirements: []string{ids.ContentBlockKnownType, ids.ContentImageBase64, ids.ContentAudioBase64,
			ids.ContentImageMimeType, ids.ContentAudioMimeType, ids.ContentEmbeddedURIValid,
			ids.ContentEmbeddedMimeTypePresent, ids.ResourcesContentsTextOrBlob, ids.ResourcesContentsTextOnlyTextual,
			ids.ResourcesSecurityBinaryEncoded},
		Judge: judgeContent,
	},
	{
		Name: "annotations",
		Requirements: []string{ids.ContentAnnotationsAudienceRoles, ids.ContentAnnotationsPriorityRange,
			ids.ContentAnnotationsLastModifiedFormat},
		Judge: judgeAnnotations,
	},
}

// shape says what a piece of content is.
type shape uint8

const (
	blockShape    shape = iota // a content block
	contentsShape              // contents of a resource, read or embedded
	resourceShape              // an entry of resources/list
	templateShape              // an entry of resources/templates/list
)

// piece is a part of a message that holds content or describes it.
type piece struct {
	shape    shape
	value    map[string]any
	event    *wire.Event
	exchange *Exchange // that the event belongs to
	embedded bool      // contents within a block
}

// evidence returns the events that show the piece.
func (p *piece) evidence() []*wire.Event {
	if p.event == p.exchange.Request {
		return []*wire.Event{p.event}
	}
	return []*wire.Event{p.exchange.Request, p.event}
}

// content visits all content of the conversation in order. It leaves out the answer to a request that was broken on
// purpose: it says little about what the server does in general.
func (c *Conversation) content(visit func(p *piece)) {
	for _, x := range c.Exchanges {
		if x.Method() == "sampling/createMessage" {
			for _, m := range wire.Items(x.Request.Msg.Params, "messages") {
				visitBlock(x, x.Request, wire.At(m, "content"), visit)
			}
		}
		result := x.Result()
		if result == nil || brokenOnPurpose(c.Revision, x) {
			continue
		}
		e := x.Response
		switch x.Method() {
		case "tools/call":
			for _, block := range wire.Items(result, "content") {
				visitBlock(x, e, block, visit)
			}
		case "prompts/get":
			for _, m := range wire.Items(result, "messages") {
				visitBlock(x, e, wire.At(m, "content"), visit)
			}
		case "sampling/createMessage":
			visitBlock(x, e, result["content"], visit)
		case "resources/read":
			visitAll(x, e, result["contents"], contentsShape, visit)
		case "resources/list":
			visitAll(x, e, result["resources"], resourceShape, visit)
		case "resources/templates/list":
			visitAll(x, e, result["resourceTemplates"], templateShape, visit)
		}
	}
}

func visitAll(x *Exchange, e *wire.Event, list any, s shape, visit func(p *piece)) {
	for _, item := range wire.Items(list) {
		if o, ok := item.(map[string]any); ok {
			visit(&piece{shape: s, value: o, event: e, exchange: x})
		}
	}
}

func visitBlock(x *Exchange, e *wire.Event, block any, visit func(p *piece)) {
	o, ok := block.(map[string]any)
	if !ok {
		return // the schema judges it
	}
	visit(&piece{shape: blockShape, value: o, event: e, exchange: x})
	if inner, ok := o["resource"].(map[string]any); ok && o["type"] == "resource" {
		visit(&piece{shape: contentsShape, value: inner, event: e, exchange: x, embedded: true})
	}
}

// echoes reports whether a text is an argument of the request. If it is not a
// URI then, the fault is the requester's.
func (p *piece) echoes(text string) bool {
	arguments, _ := wire.At(p.exchange.Request.Msg.Params, "arguments").(map[string]any)
	for _, v := range arguments {
		if v == text {
			return true
		}
	}
	return false
}

// blockTypes are the kinds of content blocks; sampling knows the first three
// (client/sampling#message-content).
var blockTypes = []string{"text", "image", "audio", "resource_link", "resource"}

func judgeContent(c *Conversation, rec *Recorder) {
	c.content(func(p *piece) {
		switch p.shape {
		case blockShape:
			judgeBlock(p, rec)
		case contentsShape:
			judgeContents(p, rec)
		}
	})
}

func judgeBlock(p *piece, rec *Recorder) {
	kind, _ := p.value["type"].(string)
	known := blockTypes
	if p.exchange.Method() == "sampling/createMessage" {
		known = known[:3]
	}
	if slices.Contains(known, kind) {
		// The schema judges blocks of unknown types.
		rec.Pass(ids.ContentBlockKnownType, p.event.From)
	}
	if kind != "image" && kind != "audio" {
		return
	}
	if data, ok := p.value["data"].(string); ok {
		problem := schema.CheckFormat("byte", data)
		rec.Check(problem == "", "content."+kind+".base64", p.event.From, "the data of an "+kind+" block is "+problem,
			p.evidence()...)
	}
	mimeType, ok := p.value["mimeType"].(string)
	rec.Check(ok && isMIMEType(mimeType), "content."+kind+".mime-type", p.event.From,
		mimeProblem("an "+kind+" block", p.value), p.evidence()...)
	if of, _, _ := strings.Cut(strings.ToLower(mimeType), "/"); of != kind &&
		slices.Contains([]string{"text", "image", "audio", "font"}, of) {
		rec.Warn("content."+kind+".mime-type", p.event.From,
			"the mimeType of an "+kind+" block is "+wire.Quote(mimeType, 60)+", which is not that of an "+kind,
			p.evidence()...)
	}
}

// server/resources#resource-contents, server/prompts#embedded-resources
func judgeContents(p *piece, rec *Recorder) {
	_, hasText := p.value["text"]
	blob, hasBlob := p.value["blob"]
	what := "the content of a resource"
	if p.embedded {
		what = "an embedded resource"
	}
	message := what + " has neither text nor blob"
	if hasText && hasBlob {
		message = what + " has both text and blob"
	}
	rec.Check(hasText != hasBlob, ids.ResourcesContentsTextOrBlob, p.event.From, message, p.evidence()...)
	if text, ok := blob.(string); ok {
		problem := schema.CheckFormat("byte", text)
		rec.Check(problem == "", ids.ResourcesSecurityBinaryEncoded, p.event.From, "the blob of "+what+" is "+problem,
			p.evidence()...)
	}
	if text, ok := p.value["text"].(string); ok && !hasBlob {
		mimeType, _ := p.value["mimeType"].(string)
		const textual = ids.ResourcesContentsTextOnlyTextual
		switch {
		case binary(mimeType) && strings.ContainsAny(text, "\u0000\uFFFD"):
			rec.Fail(ids.ResourcesSecurityBinaryEncoded, p.event.From,
				what+" is of the type "+wire.Quote(mimeType, 60)+" and came as text, which has lost some bytes",
				p.evidence()...)
		case p.event.From != wire.Server || mimeType == "" ||
			essence(mimeType) == "application/octet-stream":
			// Servers give that type to everything that they do not know, text included.
		default:
			rec.Check(!binary(mimeType), textual, wire.Server,
				what+" is of the type "+wire.Quote(mimeType, 60)+", which is not text, but came in the member text",
				p.evidence()...)
		}
	}
	if !p.embedded {
		return
	}
	if p.exchange.Method() == "prompts/get" {
		mimeType, ok := p.value["mimeType"].(string)
		rec.Check(ok && isMIMEType(mimeType), ids.ContentEmbeddedMimeTypePresent, p.event.From,
			mimeProblem("a resource embedded in a prompt", p.value), p.evidence()...)
	}
	uri, ok := p.value["uri"].(string)
	if ok && p.echoes(uri) {
		return
	}
	problem := "the uri of an embedded resource is absent or is not a string"
	if ok {
		if problem = schema.CheckFormat("uri", uri); problem != "" {
			problem = "the uri " + wire.Quote(uri, 80) + " of an embedded resource is " + problem
		}
	}
	rec.Check(problem == "", ids.ContentEmbeddedURIValid, p.event.From, problem, p.evidence()...)
}

func mimeProblem(what string, value map[string]any) string {
	mimeType, ok := value["mimeType"]
	if !ok {
		return what + " has no mimeType"
	}
	return "the mimeType of " + what + " is " + wire.Show(mimeType) + ", not type/subtype"
}

// A media type as RFC 9110 section 8.3.1 has it, with optional parameters.
var mimeType = regexp.MustCompile("^" + mimeToken + "/" + mimeToken +
	"([ \t]*;[ \t]*(" + mimeToken + "=(" + mimeToken + `|"([^"\\]|\\.)*"))?)*[ ` + "\t]*$")

const mimeToken = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

// essence returns a media type in small letters and without its parameters.
func essence(mimeType string) string {
	bare, _, _ := strings.Cut(strings.ToLower(mimeType), ";")
	return strings.TrimSpace(bare)
}

// binary reports whether what is of a media type is never text
// (schema#textresourcecontents).
func binary(mimeType string) bool {
	kind, of, _ := strings.Cut(essence(mimeType), "/")
	switch kind {
	case "image", "audio", "video", "font":
		return !strings.HasSuffix(of, "+xml")
	}
	return kind == "application" && slices.Contains([]string{"octet-stream", "pdf", "zip", "gzip"}, of)
}

// longestMIMEType is far beyond what RFC 6838 section 4.2 allows.
const longestMIMEType = 4096

func isMIMEType(s string) bool { return len(s) <= longestMIMEType && mimeType.MatchString(s) }

// server/resources#annotations
func judgeAnnotations(c *Conversation, rec *Recorder) {
	c.content(func(p *piece) {
		annotations, ok := p.value["annotations"].(map[string]any)
		if !ok {
			return
		}
		from := p.event.From
		audience, given := annotations["audience"].([]any)
		if given && roles(audience) {
			rec.Pass(ids.ContentAnnotationsAudienceRoles, from)
		}
		if v, ok := floatOf(annotations["priority"]); ok && v >= 0 && v <= 1 {
			rec.Pass(ids.ContentAnnotationsPriorityRange, from)
		}
		if p.shape == contentsShape {
			judgeContentsAnnotations(p, annotations, rec)
		}
		if at, ok := annotations["lastModified"].(string); ok {
			rec.Check(isISO8601(at), ids.ContentAnnotationsLastModifiedFormat, from,
				"lastModified is "+wire.Show(at)+", not an ISO 8601 timestamp", p.evidence()...)
		}
	})
}

// judgeContentsAnnotations judges roles and priorities where the page has annotations
// (server/tools#embedded-resources) and the schema, which judges all others, has none.
func judgeContentsAnnotations(p *piece, annotations map[string]any, rec *Recorder) {
	if audience, given := annotations["audience"]; given {
		list, ok := audience.([]any)
		rec.Check(ok && roles(list), ids.ContentAnnotationsAudienceRoles, p.event.From,
			"the audience of a resource's contents is "+wire.Quote(wire.Show(audience), 80)+
				", not a list of user and assistant", p.evidence()...)
	}
	if priority, given := annotations["priority"]; given {
		v, ok := floatOf(priority)
		rec.Check(ok && v >= 0 && v <= 1, ids.ContentAnnotationsPriorityRange, p.event.From,
			"the priority of a resource's contents is "+wire.Quote(wire.Show(priority), 40)+
				", not a number from 0 to 1", p.evidence()...)
	}
}

func roles(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return v != "user" && v != "assistant" })
}

// lastOf returns the position of the last message of a party, or -1. Earlier messages of the peer did not make the
// party stop.
func (c *Conversation) lastOf(p wire.Party) int {
	for _, e := range slices.Backward(c.Messages) {
		if e.From == p && e.Msg.Kind != wire.Invalid {
			return e.Seq
		}
	}
	return -1
}

// The forms of ISO 8601: calendar, week and ordinal dates, in the extended and
// the basic format, with or without a time and an offset.
var iso8601 = regexp.MustCompile(`^[+-]?\d{4}(?:-(\d{2})(?:-(\d{2}))?|(\d{2})(\d{2})|-?W\d{2}(?:-?[1-7])?|-?\d{3})?` +
	`(?:[Tt](\d{2})(?::?(\d{2})(?::?(\d{2}))?)?(?:[.,]\d+)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)?)?$`)

func isISO8601(s string) bool {
	if len(s) > 64 {
		return false
	}
	parts := iso8601.FindStringSubmatch(s)
	if parts == nil {
		return false
	}
	// The largest value of each group: month, day, twice, and hour, minute, second.
	for i, most := range []int{12, 31, 12, 31, 24, 59, 60} {
		if parts[i+1] == "" {
			continue
		}
		n, _ := strconv.Atoi(parts[i+1])
		if n > most || i < 4 && n == 0 {
			return false
		}
	}
	return true
}

// floatOf returns the value of a decoded number.
func floatOf(v any) (float64, bool) {
	n, ok := v.(interface{ Float64() (float64, error) })
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// scheme returns what stands before the first colon of an identifier that has
// a scheme, even a malformed one.
func scheme(uri string) (string, bool) {
	s, _, found := strings.Cut(uri, ":")
	return s, found && s != "" && !strings.ContainsAny(s, "/?#")
}
