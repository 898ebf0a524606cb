package judge

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// The text names no rate, so only a flood counts: so many messages of one kind within
// one second that neither a person nor a limiter can have been at work.
const flood = 1000

var rateRules = []Rule{
	{
		Name: "rates",
		Requirements: []string{ids.PingNotExcessive, ids.ProgressRateLimit, ids.LoggingRateLimit,
			ids.CompletionClientDebounce},
		Judge: judgeRates,
	},
	{Name: "progress message", Requirements: []string{ids.ProgressMessageReadable}, Judge: judgeProgressMessage},
}

// limited are the methods whose messages should not come in floods, with the
// requirement that says so.
var limited = map[string]string{
	"ping":                   ids.PingNotExcessive,
	"notifications/progress": ids.ProgressRateLimit,
	"notifications/message":  ids.LoggingRateLimit,
	"completion/complete":    ids.CompletionClientDebounce,
}

func judgeRates(c *Conversation, rec *Recorder) {
	sent := make(map[Key]map[string][]*wire.Event)
	for _, id := range limited {
		for _, p := range []wire.Party{wire.Client, wire.Server} {
			sent[Key{Requirement: id, Party: p}] = make(map[string][]*wire.Event)
		}
	}
	for _, e := range c.Messages {
		if id, ok := limited[e.Msg.Method]; ok {
			// Progress is limited for each request that asked for it: together, many requests make many notifications.
			of := wire.Show(wire.At(e.Msg.Params, "progressToken"))
			if x := c.Of(e); x != nil && x.Request != e {
				of = strconv.Itoa(x.Request.Seq) // a token is free again after the response
			}
			k := Key{Requirement: id, Party: e.From}
			sent[k][of] = append(sent[k][of], e)
		}
	}
	for k, kinds := range sent {
		for _, events := range kinds {
			first := 0
			for first+flood < len(events) && events[first+flood].At-events[first].At > time.Second {
				first++
			}
			if first+flood < len(events) {
				rec.Fail(k.Requirement, k.Party,
					fmt.Sprintf("more than %d %s were sent within a second", flood, events[first].Msg.Method),
					events[first], events[first+flood])
			}
		}
		if len(kinds) > 0 {
			rec.Pass(k.Requirement, k.Party)
		} else {
			rec.Skip(k.Requirement, k.Party, fmt.Sprintf("the %s sent no such message", k.Party))
		}
	}
}

// A message of progress is for people (basic/utilities/progress#progress-flow): one
// without a letter or a digit tells them nothing.
func judgeProgressMessage(c *Conversation, rec *Recorder) {
	for _, e := range c.Messages {
		if e.Msg.Kind != wire.Notification || e.Msg.Method != "notifications/progress" {
			continue
		}
		if text, ok := wire.At(e.Msg.Params, "message").(string); ok {
			says := strings.ContainsFunc(text, func(r rune) bool {
				return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r)
			})
			rec.Check(says, ids.ProgressMessageReadable, e.From,
				"the message of the progress is "+wire.Quote(text, 80)+", which tells the user nothing", e)
		}
	}
}
