package judge

import "github.com/mcpconform/mcpconform/reference/wire"
import "github.com/mcpconform/mcpconform/schema/ids"

var promptRules = []Rule{
	{
		Name: "prompts",
		Requirements: []string{ids.PromptsNameUnique, ids.PromptsMessageRoleSpeaker,
			ids.PromptsArgumentRequiredGiven},
		Judge: judgePrompts,
	},
}

// maxPrompts bounds how many prompts or templates of one list are remembered.
const maxPrompts = 20_000

// listedPrompt is a prompt as the last list showed it.
type listedPrompt struct {
	listed    *wire.Event
	arguments map[string]bool // by name, whether required
}

// readPrompts takes the prompts of a result of prompts/list.
func readPrompts(x *Exchange, into map[string]listedPrompt) {
	items, _ := x.Result()["prompts"].([]any)
	for _, item := range items[:min(len(items), maxPrompts)] {
		name, ok := wire.At(item, "name").(string)
		if !ok {
			continue
		}
		p := listedPrompt{listed: x.Response, arguments: make(map[string]bool)}
		arguments, _ := wire.At(item, "arguments").([]any)
		for _, a := range arguments {
			if name, ok := wire.At(a, "name").(string); ok {
				p.arguments[name] = p.arguments[name] || wire.At(a, "required") == true
			}
		}
		into[name] = p
	}
}

func judgePrompts(c *Conversation, rec *Recorder) {
	judgeUnique(c, rec, "prompts/list", "prompts", "name", ids.PromptsNameUnique)
	prompts := make(map[string]listedPrompt)
	for _, e := range c.Messages {
		x := c.Of(e)
		switch {
		case x == nil || x.From() != wire.Client:
		case x.Method() == "prompts/list" && e == x.Response:
			readPrompts(x, prompts)
		case x.Method() == "prompts/get" && e == x.Request:
			judgeGiven(x, prompts, rec)
		case x.Method() == "prompts/get" && e == x.Response:
			for _, m := range wire.Items(x.Result(), "messages") {
				role := wire.At(m, "role")
				rec.Check(role == "user" || role == "assistant", ids.PromptsMessageRoleSpeaker, wire.Server,
					"the role of a prompt message is "+wire.Show(role)+", not user or assistant", x.Events()...)
			}
		}
	}
}

// schema#promptargument: the client gives the arguments that the list marks as
// required.
func judgeGiven(x *Exchange, prompts map[string]listedPrompt, rec *Recorder) {
	const id = ids.PromptsArgumentRequiredGiven
	name, _ := wire.At(x.Request.Msg.Params, "name").(string)
	p, ok := prompts[name]
	if !ok {
		return
	}
	given, _ := wire.At(x.Request.Msg.Params, "arguments").(map[string]any)
	some := false
	for argument, required := range p.arguments {
		if !required {
			continue
		}
		some = true
		if _, ok := given[argument]; !ok {
			rec.Fail(id, wire.Client, "prompts/get for "+wire.Quote(name, 60)+" lacks a required argument", p.listed,
				x.Request)
			return
		}
	}
	if some {
		rec.Pass(id, wire.Client)
	}
}
