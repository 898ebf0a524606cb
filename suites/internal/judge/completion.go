package judge

import (
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var completionRules = []Rule{
	{
		Name: "completion requests",
		Requirements: []string{ids.CompletionRefKinds, ids.CompletionArgumentCurrentValue,
			ids.CompletionContextResolvedValues, ids.CompletionContextClientSends},
		Judge: judgeCompletionRequests,
	},
	{
		Name: "completion results",
		Requirements: []string{ids.CompletionResultMax100, ids.CompletionResultTotalMeaning,
			ids.CompletionResultHasMoreMeaning, ids.CompletionResultTotalExceedsValues,
			ids.CompletionClientPartialResults},
		Judge: judgeCompletionResults,
	},
}

// The client may ask for things that this conversation has not listed, as it may know them from elsewhere. Only
// listed names are judged.
func judgeCompletionRequests(c *Conversation, rec *Recorder) {
	prompts := make(map[string]listedPrompt)
	templates := make(map[string]map[string]bool)
	for _, e := range c.Messages {
		x := c.Of(e)
		if x == nil || x.From() != wire.Client {
			continue
		}
		switch {
		case x.Method() == "prompts/list" && e == x.Response:
			readPrompts(x, prompts)
		case x.Method() == "resources/templates/list" && e == x.Response:
			items, _ := x.Result()["resourceTemplates"].([]any)
			for _, item := range items[:min(len(items), maxPrompts)] {
				if t, ok := wire.At(item, "uriTemplate").(string); ok {
					templates[t] = variables(t)
				}
			}
		case x.Method() == "completion/complete" && e == x.Request:
			judgeCompletionRequest(x, prompts, templates, rec)
		}
	}
}

func judgeCompletionRequest(x *Exchange, prompts map[string]listedPrompt, templates map[string]map[string]bool,
	rec *Recorder) {
	params := x.Request.Msg.Params
	var known map[string]bool
	listed := false
	switch kind := wire.At(params, "ref", "type"); kind {
	case "ref/prompt":
		name, ok := wire.At(params, "ref", "name").(string)
		rec.Check(ok, ids.CompletionRefKinds, wire.Client, "a ref/prompt has no name", x.Request)
		var p listedPrompt
		p, listed = prompts[name]
		known = p.arguments
	case "ref/resource":
		uri, ok := wire.At(params, "ref", "uri").(string)
		rec.Check(ok, ids.CompletionRefKinds, wire.Client, "a ref/resource has no uri", x.Request)
		known, listed = templates[uri]
	default:
		rec.Fail(ids.CompletionRefKinds, wire.Client, "the type of the ref is "+wire.Show(kind), x.Request)
	}
	if !listed {
		return
	}
	name, _ := wire.At(params, "argument", "name").(string)
	_, ok := known[name]
	rec.Check(ok, ids.CompletionArgumentCurrentValue, wire.Client,
		wire.Quote(name, 60)+" is not an argument of the prompt or template that the ref names", x.Request)
	resolved, given := wire.At(params, "context", "arguments").(map[string]any)
	if !given || len(resolved) == 0 {
		return
	}
	strange := ""
	for name := range resolved {
		if _, ok := known[name]; !ok && (strange == "" || name < strange) {
			strange = name
		}
	}
	rec.Check(strange == "", ids.CompletionContextResolvedValues, wire.Client,
		"context.arguments names "+wire.Quote(strange, 60)+
			", which is not an argument of the prompt or template that the ref names", x.Request)
	if strange == "" {
		// A context that was left out proves nothing: what the user has settled is unknown.
		rec.Pass(ids.CompletionContextClientSends, wire.Client)
	}
}

// variables returns the names of the variables of a URI template (RFC 6570
// section 2.3).
func variables(template string) map[string]bool {
	names := make(map[string]bool)
	for {
		_, rest, found := strings.Cut(template, "{")
		if !found {
			return names
		}
		expression, after, closed := strings.Cut(rest, "}")
		if !closed {
			return names
		}
		for name := range strings.SplitSeq(strings.TrimLeft(expression, "+#./;?&"), ",") {
			name, _, _ = strings.Cut(strings.TrimSuffix(name, "*"), ":")
			names[name] = false
		}
		template = after
	}
}

// maxCompletions is how many values a result may hold
// (server/utilities/completion#completion-results).
const maxCompletions = 100

func judgeCompletionResults(c *Conversation, rec *Recorder) {
	last := c.lastOf(wire.Client)
	for _, x := range c.Exchanges {
		if x.Method() != "completion/complete" || x.Response == nil || x.From() != wire.Client {
			continue
		}
		wentOn := x.Response.Seq < last
		values, ok := wire.At(x.Result(), "completion", "values").([]any)
		if !ok {
			if wentOn && x.Result() == nil {
				rec.Pass(ids.CompletionClientPartialResults, wire.Client)
			}
			continue
		}
		rec.Check(len(values) <= maxCompletions, ids.CompletionResultMax100, wire.Server,
			"the result has "+strconv.Itoa(len(values))+" values", x.Events()...)
		total, hasTotal := floatOf(wire.At(x.Result(), "completion", "total"))
		more, hasMore := wire.At(x.Result(), "completion", "hasMore").(bool)
		if wentOn && (len(values) == 0 || !hasTotal && !hasMore) {
			rec.Pass(ids.CompletionClientPartialResults, wire.Client)
		}
		if !hasTotal {
			continue
		}
		n := float64(len(values))
		rec.Check(total >= n, ids.CompletionResultTotalMeaning, wire.Server,
			"total is smaller than the number of values", x.Events()...)
		if wentOn && total > n {
			rec.Pass(ids.CompletionResultTotalExceedsValues, wire.Client)
		}
		if !hasMore || total < n {
			continue
		}
		message := "hasMore is false although total is larger than the number of values"
		if more {
			message = "hasMore is true although the result holds as many values as total counts"
		}
		rec.Check(more == (total > n), ids.CompletionResultHasMoreMeaning, wire.Server, message, x.Events()...)
	}
}
