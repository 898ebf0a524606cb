package judge

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var samplingRules = []Rule{{
	Name: "sampling",
	Requirements: []string{ids.SamplingCapabilityDeclared, ids.SamplingCapabilityHonoured, ids.SamplingRequestNested,
		ids.SamplingMessageContentKinds, ids.SamplingPreferencesPriorityRange, ids.SamplingResultRoleAssistant,
		ids.SamplingResultModelNamed, ids.SamplingMaxTokensLimit, ids.SamplingSecurityValidateContent,
		ids.LifecycleCapabilityClientRefusesSampling},
	Judge: func(c *Conversation, rec *Recorder) {
		judgeFeature(c, sampling, rec, judgeSamplingRequest, judgeSamplingResult)
	},
}}

// feature is something that a client offers and a server asks for.
type feature struct {
	capability, method         string
	declared, honoured, nested string // requirements; "" for none
	refused                    string
}

// judgeFeature judges the requests for a feature, how a client answers them, and the answers.
func judgeFeature(c *Conversation, f feature, rec *Recorder, request, answer func(x *Exchange, rec *Recorder)) {
	for _, x := range c.Exchanges {
		if x.From() == wire.Server && x.Method() == f.method {
			request(x, rec)
		}
	}
	if c.Init == nil || c.Init.From() != wire.Client {
		return // what was declared is not known
	}
	declared := c.Declared(wire.Client, f.capability)
	nested := make(map[*Exchange]int)       // requests within a call of the client, by the number of the busy period
	var waiting []*Exchange                 // that are not answered yet, while a call of the client is open
	held := make(map[*Exchange]*wire.Event) // those that were left until no call was open, and what ended the last
	open, period := 0, 0
	for _, e := range c.Messages {
		x := c.Of(e)
		switch {
		case x == nil || x.Shared || e.Msg.Kind == wire.Notification:
		case e == x.Request && e.From == wire.Client:
			if open++; open == 1 {
				period++
			}
		case e == x.Request && e.Msg.Method == f.method:
			if open > 0 {
				nested[x] = period
				waiting = append(waiting, x)
			}
		case e != x.Response:
		case x.From() == wire.Client:
			if open--; open == 0 {
				for _, x := range waiting {
					if (x.Response == nil || x.Response.Seq > e.Seq) && e.At-x.Request.At >= overtaking {
						held[x] = e
					}
				}
				waiting = nil
			}
		case x.Method() == f.method:
			if end := held[x]; end != nil && x.Cancelled == nil && f.nested != "" && declared &&
				e.At-end.At < Crossing {
				rec.Warn(f.nested, wire.Client, x.Method()+" was answered only when the client's own request had ended",
					x.Request, end, e)
			}
			c.judgeOffer(f, declared, x, rec)
			if p, ok := nested[x]; ok && f.nested != "" && declared && open > 0 && p == period {
				rec.Pass(f.nested, wire.Client)
			}
			answer(x, rec)
		}
	}
}

func (c *Conversation) judgeOffer(f feature, declared bool, x *Exchange, rec *Recorder) {
	answer := x.Response.Msg
	proof := declaring(c, wire.Client, x.Events()...)
	// A form that nobody fills in can be declined by a client that does not have the feature.
	supports := x.Method() != elicitation.method || x.Result()["action"] == "accept"
	if answer.Kind == wire.Result && (declared || supports) {
		rec.Check(declared, f.declared, wire.Client,
			x.Method()+" was served although the client has not declared "+f.capability, proof...)
		if !declared {
			return
		}
	}
	unknown := answer.Kind == wire.ErrorResponse && answer.Error != nil && answer.Error.Code == -32601
	if !declared {
		switch {
		case f.refused == "":
		case unknown:
			rec.Pass(f.refused, wire.Client)
		case answer.Kind == wire.ErrorResponse:
			// basic/lifecycle#operation names no code.
			rec.Warn(f.refused, wire.Client, "the client has not declared "+f.capability+" and answers "+x.Method()+
				" with the error "+
				wire.Show(wire.At(answer.Value(), "error", "code"))+
				"; -32601, for a method that is not available, was expected", proof...)
		default:
			// A form that is declined is refused as well; no sentence names the way (docs/positions.md, leniency).
			rec.Note(f.refused, wire.Client, "the client has not declared "+f.capability+
				" and declines a form instead of answering "+x.Method()+" with the error -32601")
		}
		return
	}
	if unknown && malformed(x.Request, rec) {
		return // what the code has to be then is base.error.invalid-params
	}
	rec.Check(!unknown, f.honoured, wire.Client,
		"the client has declared "+f.capability+", but answers "+x.Method()+" with -32601", proof...)
}

var sampling = feature{
	"sampling", "sampling/createMessage",
	ids.SamplingCapabilityDeclared, ids.SamplingCapabilityHonoured, ids.SamplingRequestNested,
	ids.LifecycleCapabilityClientRefusesSampling,
}

func judgeSamplingRequest(x *Exchange, rec *Recorder) {
	params := x.Request.Msg.Params
	for _, m := range wire.Items(params, "messages") {
		judgeSamplingContent(wire.At(m, "content"), x.Request, []*wire.Event{x.Request}, rec)
	}
	for _, name := range []string{"costPriority", "speedPriority", "intelligencePriority"} {
		preferences, _ := wire.At(params, "modelPreferences").(map[string]any)
		v, given := preferences[name]
		if !given {
			continue
		}
		n, ok := number(v)
		rec.Check(ok && n.Sign() >= 0 && n.Cmp(big.NewRat(1, 1)) <= 0, ids.SamplingPreferencesPriorityRange,
			wire.Server, name+" is "+wire.Show(v)+", not a number from 0 to 1", x.Request)
	}
}

// judgeSamplingContent judges the content of one sampling message
// (client/sampling#messages).
func judgeSamplingContent(content any, sent *wire.Event, evidence []*wire.Event, rec *Recorder) {
	const id = ids.SamplingMessageContentKinds
	block, ok := content.(map[string]any)
	if !ok {
		rec.Fail(id, sent.From, "the content is "+wire.TypeName(content)+", not an object", evidence...)
		return
	}
	rec.Check(samplingKind(block["type"]), id, sent.From,
		"the content is of type "+wire.Show(block["type"])+", not text, image or audio", evidence...)
}

// membersOf are the texts that content of each kind needs.
var membersOf = map[any][]string{"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"}}

func samplingKind(kind any) bool { return kind == "text" || kind == "image" || kind == "audio" }

// A generation has exceeded the limit if it has more than wordsPerToken words for
// each token and extraWords in addition: a token is hardly ever more than a word.
const (
	wordsPerToken = 3
	extraWords    = 10
)

func judgeSamplingResult(x *Exchange, rec *Recorder) {
	result := x.Result()
	faulty := faultyContent(x.Request.Msg.Params)
	if result == nil {
		// Another error may be the refusal of a user who refuses everything.
		if e := x.Response.Msg.Error; faulty != "" && e != nil && e.Code == -32602 {
			rec.Pass(ids.SamplingSecurityValidateContent, wire.Client)
		}
		return
	}
	if faulty != "" {
		rec.Fail(ids.SamplingSecurityValidateContent, wire.Client,
			"a message with invalid content was answered with a generation: "+faulty, x.Events()...)
	}
	judgeSamplingContent(result["content"], x.Response, x.Events(), rec)
	if role, ok := result["role"].(string); ok {
		rec.Check(role != "user", ids.SamplingResultRoleAssistant, wire.Client,
			"the role of the generated message is user, not assistant", x.Events()...)
	}
	if model, ok := result["model"].(string); ok {
		rec.Check(strings.TrimSpace(model) != "", ids.SamplingResultModelNamed, wire.Client, "model is empty",
			x.Events()...)
	}
	text, ok := wire.At(result, "content", "text").(string)
	limit, given := number(wire.At(x.Request.Msg.Params, "maxTokens"))
	if ok && given && limit.Sign() > 0 {
		words := big.NewRat(int64(len(strings.Fields(text))-extraWords), wordsPerToken)
		rec.Check(words.Cmp(limit) <= 0, ids.SamplingMaxTokensLimit, wire.Client,
			"the generation has many more words than the tokens that maxTokens allows: "+
				strconv.Itoa(len(strings.Fields(text))), x.Events()...)
	}
}

// faultyContent says what makes the content of a sampling request unusable, or "".
func faultyContent(params any) string {
	for _, m := range wire.Items(params, "messages") {
		content := wire.At(m, "content")
		kind := wire.At(content, "type")
		if !samplingKind(kind) {
			return "its type is " + wire.Show(kind)
		}
		for _, member := range membersOf[kind] {
			if _, ok := wire.At(content, member).(string); !ok {
				return "its " + member + " is " + wire.TypeName(wire.At(content, member))
			}
		}
		if data, ok := wire.At(content, "data").(string); ok && kind != "text" {
			if reason := schema.CheckFormat("byte", data); reason != "" {
				return "its data is " + reason
			}
		}
	}
	return ""
}

// number reads a decoded number exactly.
func number(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 64 {
		return nil, false
	}
	return ratio(n)
}
