package judge

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

func schemaRules(revision *schema.Revision) []Rule {
	return []Rule{{Name: "schema", Requirements: schemaRequirements(revision), Judge: judgeSchema}}
}

// finer names the requirement that a schema violation breaks, if there is a more telling one than the definition
// itself. The first match decides.
var finer = []struct {
	definition string // "" for any
	pointer    string // suffix; "*" stands for one member or index
	keyword    string // "" for any
	id         string
}{
	{"InitializeRequest", "/params/protocolVersion", "required", ids.LifecycleInitRequestVersion},
	{"InitializeRequest", "/params/capabilities", "required", ids.LifecycleInitRequestCapabilities},
	{"InitializeRequest", "/params/clientInfo", "required", ids.LifecycleInitRequestClientInfo},
	{"InitializeRequest", "/params/capabilities", "", ids.SchemaClientCapabilities},
	{"InitializeRequest", "/params/capabilities/*", "", ids.SchemaClientCapabilities},
	{"InitializeRequest", "/params/capabilities/*/*", "", ids.SchemaClientCapabilities},
	{"InitializeRequest", "/params/clientInfo", "", ids.SchemaImplementation},
	{"InitializeRequest", "/params/clientInfo/*", "", ids.SchemaImplementation},
	{"InitializeResult", "/protocolVersion", "", ids.LifecycleInitResultVersion},
	{"InitializeResult", "/capabilities", "required", ids.LifecycleInitResultCapabilities},
	{"InitializeResult", "/serverInfo", "required", ids.LifecycleInitResultServerInfo},
	{"InitializeResult", "/capabilities", "", ids.SchemaServerCapabilities},
	{"InitializeResult", "/capabilities/*", "", ids.SchemaServerCapabilities},
	{"InitializeResult", "/capabilities/*/*", "", ids.SchemaServerCapabilities},
	{"InitializeResult", "/serverInfo", "", ids.SchemaImplementation},
	{"InitializeResult", "/serverInfo/*", "", ids.SchemaImplementation},
	{"", "/_meta/progressToken", "", ids.ProgressTokenType},
	{"ProgressNotification", "/params/progressToken", "type", ids.ProgressTokenType},
	{"", "/_meta", "", ids.MetaObject},
	{"", "/annotations/audience", "", ids.ContentAnnotationsAudienceRoles},
	{"", "/annotations/audience/*", "", ids.ContentAnnotationsAudienceRoles},
	{"", "/annotations/priority", "", ids.ContentAnnotationsPriorityRange},
	{"CallToolResult", "/structuredContent", "type", ids.ToolsStructuredContentObject},
	{"CompleteResult", "/completion/values", "maxItems", ids.CompletionResultMax100},
	{"ElicitRequest", "/params/requestedSchema/properties/*", "", ids.ElicitationSchemaPrimitiveTypes},
	{"ElicitRequest", "/params/requestedSchema/properties/*/type", "", ids.ElicitationSchemaPrimitiveTypes},
	{"ElicitRequest", "/params/requestedSchema/properties/*/format", "", ids.ElicitationSchemaFormats},
	{"ElicitResult", "/action", "", ids.ElicitationActionValues},
	{"ElicitResult", "/content/*", "", ids.ElicitationContentPrimitiveValues},
}

// contentHolders are the definitions that hold content blocks: an unknown type of
// block, and data that is not base64, have requirements of their own.
var contentHolders = []string{"CallToolResult", "GetPromptResult", "CreateMessageResult", "CreateMessageRequest"}

// formatsJudged are the definitions whose strings with a format (data and blob,
// uri and uriTemplate) the rules of content.go and resources.go judge.
var formatsJudged = append([]string{"ReadResourceResult", "ListResourcesResult", "ListResourceTemplatesResult",
	"ResourceUpdatedNotification"}, contentHolders...)

func schemaRequirements(revision *schema.Revision) []string {
	var requirements []string
	add := func(id string) {
		if !slices.Contains(requirements, id) {
			requirements = append(requirements, id)
		}
	}
	for _, p := range []schema.Party{schema.Client, schema.Server} {
		for _, m := range revision.Methods(p) {
			def, _ := revision.Request(p, m)
			add(revision.RequirementID(def))
			add(revision.ResultRequirementID(m))
		}
		for _, m := range revision.NotificationMethods(p) {
			def, _ := revision.Notification(p, m)
			add(revision.RequirementID(def))
		}
	}
	for _, f := range finer {
		add(f.id)
	}
	for _, id := range []string{ids.SchemaClientRequest, ids.SchemaServerRequest, ids.SchemaClientNotification,
		ids.SchemaServerNotification, ids.ContentBlockKnownType, ids.PingNoParams, ids.PingResponseEmpty} {
		add(id)
	}
	return requirements
}

func judgeSchema(c *Conversation, rec *Recorder) {
	for _, e := range c.Messages {
		switch m := e.Msg; m.Kind {
		case wire.Request, wire.Notification:
			judgeCall(c, e, rec)
		case wire.Result:
			// A further response to an id may be meant for another request.
			if x := c.Of(e); x != nil && x.Response == e && !x.Shared {
				judgeResult(x, e, rec)
			}
		}
	}
}

// judgeCall judges a request or notification by its method and direction.
func judgeCall(c *Conversation, e *wire.Event, rec *Recorder) {
	revision, sender := c.Revision, schema.Party(e.From)
	kind, def, known, other := "request", "", false, false
	if e.Msg.Kind == wire.Request {
		def, known = revision.Request(sender, e.Msg.Method)
		_, other = revision.Request(schema.Party(e.From.Peer()), e.Msg.Method)
	} else {
		kind = "notification"
		def, known = revision.Notification(sender, e.Msg.Method)
		_, other = revision.Notification(schema.Party(e.From.Peer()), e.Msg.Method)
	}
	direction := "schema." + string(e.From) + "-" + kind
	if !known {
		if other {
			rec.Fail(direction, e.From, "only a "+string(e.From.Peer())+" sends "+e.Msg.Method, e)
		}
		// A method that the revision does not know is not forbidden.
		return
	}
	rec.Pass(direction, e.From)
	if e.Msg.Has(wire.ParamsType) {
		return // the envelope rule judges it
	}
	if c.echoesURI(e) {
		return // the server has given it as a URI
	}
	report(def, revision.RequirementID(def), e.Msg.Value, e, []*wire.Event{e}, rec)
	if e.Msg.Method == "ping" {
		params, _ := e.Msg.Params.(map[string]any)
		rec.Check(only(params, "_meta"), ids.PingNoParams, e.From, "the ping has params, which it should not", e)
	}
}

// malformed reports whether a request is not what the schema says of its method.
func malformed(e *wire.Event, rec *Recorder) bool {
	def, known := rec.Revision.Request(schema.Party(e.From), e.Msg.Method)
	return known && (e.Msg.Has(wire.ParamsType) ||
		len(rec.trace.validated.judge(rec.Revision, def, e.Msg.Value, e)) > 0)
}

// echoesURI reports whether a client names a resource by what is not a URI, just as
// the server has given it.
func (c *Conversation) echoesURI(e *wire.Event) bool {
	uri, ok := wire.At(e.Msg.Params, "uri").(string)
	if e.From != wire.Client || !ok || schema.CheckFormat("uri", uri) == "" {
		return false
	}
	for _, given := range c.Messages {
		if given.Seq > e.Seq {
			break
		}
		if given.From == wire.Server && holds(payload(given.Msg), uri, 0) {
			return true
		}
	}
	return false
}

// holds reports whether a decoded value has a text in it as a URI.
func holds(v any, text string, depth int) bool {
	if depth > maxHolds {
		return false
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holds(item, text, depth+1) })
	case map[string]any:
		for name, member := range v {
			if name == "uri" && member == text || holds(member, text, depth+1) {
				return true
			}
		}
	}
	return false
}

// maxHolds is how deep URIs of resources are in what servers send.
const maxHolds = 6

// only reports whether an object has no members but the named one.
func only(o map[string]any, name string) bool {
	for k := range o {
		if k != name {
			return false
		}
	}
	return true
}

func judgeResult(x *Exchange, e *wire.Event, rec *Recorder) {
	def, known := rec.Revision.Result(x.Method())
	if !known || e.Msg.Has(wire.ResultType) {
		return
	}
	if brokenOnPurpose(rec.Revision, x) {
		// The answer to a broken request may repeat what was broken.
		return
	}
	value := func() any { return e.Msg.Result }
	report(def, rec.Revision.ResultRequirementID(x.Method()), value, e, []*wire.Event{x.Request, e}, rec)
	if x.Method() == "ping" {
		result, _ := e.Msg.Result.(map[string]any)
		rec.Check(only(result, "_meta"), ids.PingResponseEmpty, e.From, "the result of ping is not empty", x.Request, e)
	}
}

// validated keeps what was found in messages, by their definition and what they say: each session begins
// with the same ones.
type validated map[said][]schema.Violation

// said is a message by its definition and its text: that of its params or result, if it has nothing else that is
// judged.
type said struct{ definition, text string }

// Bounds of the messages that are kept: in number, and the bytes of one.
const (
	maxValidated     = 1000
	maxValidatedText = 4 << 10
)

// saying returns what a message says as one of a definition, if that is short.
func saying(def string, e *wire.Event) (said, bool) {
	text, known := e.Msg.Payload()
	if !known {
		text = string(e.Raw)
	}
	return said{def, text}, !e.Member && e.Dropped == 0 && len(text) <= maxValidatedText
}

func (known validated) judge(revision *schema.Revision, def string, value func() any,
	e *wire.Event) []schema.Violation {
	key, short := saying(def, e)
	if known == nil || !short {
		return revision.Validate(def, value())
	}
	found, ok := known[key]
	if !ok {
		found = revision.Validate(def, value())
		if len(known) < maxValidated {
			known[key] = found
		}
	}
	return found
}

// report judges the value of a message by a definition and attributes what is wrong with it.
func report(def, id string, value func() any, e *wire.Event, evidence []*wire.Event, rec *Recorder) {
	clean := true
	for _, v := range rec.trace.validated.judge(rec.Revision, def, value, e) {
		broken := refine(def, id, v)
		if v.Keyword == "format" && slices.Contains(formatsJudged, def) {
			continue // judged with content and identifiers, which have requirements of their own
		}
		if broken == ids.ProgressTokenType && e.Msg.Kind == wire.Request {
			continue // judged with progress: not every definition has _meta
		}
		clean = clean && broken != id
		if fractionalCount(v, value()) {
			rec.Warn(broken, e.From, v.String(), evidence...)
			continue
		}
		rec.Fail(broken, e.From, v.String(), evidence...)
	}
	if def == "EmptyResult" && id != rec.Revision.ResultRequirementID("ping") {
		if object, ok := value().(map[string]any); ok && !only(object, "_meta") {
			clean = false
			rec.Warn(id, e.From, "the result has members, but should be empty", evidence...)
		}
	}
	if clean {
		rec.Pass(id, e.From)
	}
	for _, part := range parts[def] {
		if wire.At(value(), part.path...) != nil {
			rec.Pass(part.id, e.From)
		}
	}
}

// parts are members of messages whose form has an entry of its own.
var parts = map[string][]struct {
	path []string
	id   string
}{
	"InitializeRequest": {
		{[]string{"params", "capabilities"}, ids.SchemaClientCapabilities},
		{[]string{"params", "clientInfo"}, ids.SchemaImplementation},
	},
	"InitializeResult": {{[]string{"capabilities"}, ids.SchemaServerCapabilities},
		{[]string{"serverInfo"}, ids.SchemaImplementation}},
}

// fractionalCount reports whether the fault is a number with a fraction where an
// integer is expected: in the TypeScript source, which is authoritative, these
// members are numbers.
func fractionalCount(v schema.Violation, value any) bool {
	switch v.Pointer {
	case "/params/maxTokens", "/completion/total":
	default:
		if !suffix(v.Pointer, "/resources/*/size") {
			return false
		}
	}
	if v.Keyword != "type" {
		return false
	}
	for _, step := range strings.Split(v.Pointer[1:], "/") {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(list) {
				return false
			}
			value = list[i]
			continue
		}
		value = wire.At(value, step)
	}
	_, ok := value.(json.Number)
	return ok
}

func refine(def, id string, v schema.Violation) string {
	pointer := v.Pointer
	if v.Property != "" {
		pointer += "/" + v.Property // the fault is reported at the object that lacks the member
	}
	for _, f := range finer {
		if (f.definition == "" || f.definition == def) && (f.keyword == "" || f.keyword == v.Keyword) &&
			suffix(pointer, f.pointer) {
			return f.id
		}
	}
	if slices.Contains(contentHolders, def) && strings.HasSuffix(v.Pointer, "/type") {
		return ids.ContentBlockKnownType
	}
	return id
}

// suffix reports whether a pointer ends in a pattern, in which * stands for one
// member or index.
func suffix(pointer, pattern string) bool {
	have, want := strings.Split(pointer, "/"), strings.Split(pattern[1:], "/")
	if len(have) <= len(want)-1 {
		return false
	}
	have = have[len(have)-len(want):]
	for i := range want {
		if want[i] != "*" && want[i] != have[i] {
			return false
		}
	}
	return true
}
