package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var loggingRules = []Rule{
	{Name: "log level", Requirements: []string{ids.LoggingFilterNoneBelow}, Judge: judgeLogLevel},
	{Name: "logger names", Requirements: []string{ids.LoggingServerConsistentLoggers}, Judge: judgeLoggers},
	{
		Name: "log contents", Requirements: []string{ids.LoggingSecurityNoCredentials,
			ids.LoggingSecurityNoPersonalData},
		Judge: judgeLogContents,
	},
}

// LogLevels are the levels of log messages, least severe first
// (server/utilities/logging#log-levels, RFC 5424 section 6.2.1).
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func severity(level any) (int, bool) {
	name, _ := level.(string)
	i := slices.Index(LogLevels, name)
	return i, i >= 0
}

// LogLevelsSet are the levels that connections to one process set. A server may
// keep one level for all of them (docs/positions.md, shared-log-level).
type LogLevelsSet []levelSet

type levelSet struct {
	conn     string
	severity int           // position in LogLevels; -1 if it is none of them
	from, to time.Duration // when it may have come into force
}

// LevelsSet returns the levels set in logs of connections that may share a process.
func LevelsSet(logs []*wire.Log) LogLevelsSet {
	var all LogLevelsSet
	for _, l := range logs {
		if l.Transport == transport.NameStdio || l.Transport == transport.NameOAuth {
			continue
		}
		for _, x := range l.Requests(wire.Client, "logging/setLevel") {
			level, _ := severity(wire.At(x.Request.Msg.Params, "level"))
			set := levelSet{conn: l.ID, severity: level, from: x.Request.At, to: math.MaxInt64}
			if x.Response != nil {
				set.to = x.Response.At
			} else if end := endOf(l, x.Request.Stream); end != nil {
				set.to = end.At + Crossing // the server may have read it, and sees to it then
			}
			all = append(all, set)
		}
	}
	return all
}

// endOf returns the event that ends the stream of the answer to a request, or nil while the stream is open.
func endOf(l *wire.Log, stream string) *wire.Event {
	switch l.Transport {
	case transport.NameHTTP:
	case transport.NameSSE:
		stream = "get:1"
	default:
		return nil
	}
	events := l.Events()
	if i := slices.IndexFunc(events, func(e *wire.Event) bool {
		return e.Kind == wire.KindStreamEnd && e.Stream == stream
	}); i >= 0 {
		return events[i]
	}
	return nil
}

// Elsewhere reports whether a level, one that fits, may have come into force
// between two times because another connection has set it.
func (s LogLevelsSet) Elsewhere(conn string, from, to time.Duration, fits func(severity int) bool) bool {
	return slices.ContainsFunc(s, func(l levelSet) bool {
		return l.conn != conn && l.from <= to && l.to >= from && l.severity >= 0 && fits(l.severity)
	})
}

// A level holds from the answer that confirms it to the next request for one:
// in between, either may be in force.
func judgeLogLevel(c *Conversation, rec *Recorder) {
	const id = ids.LoggingFilterNoneBelow
	var set *Exchange // whose level is in force; nil while that is uncertain
	pending := 0
	born := make(map[string]int) // where each stream began
	for _, e := range c.Events {
		if _, ok := born[e.Stream]; !ok {
			born[e.Stream] = e.Seq
		}
		if e.Kind != wire.KindMessage {
			continue
		}
		x := c.Of(e)
		switch {
		case x != nil && x.From() == wire.Client && x.Method() == "logging/setLevel" && e == x.Request:
			set = nil
			pending++
		case x != nil && x.From() == wire.Client && x.Method() == "logging/setLevel" && e == x.Response:
			pending--
			if _, ok := severity(wire.At(x.Request.Msg.Params, "level")); ok && pending == 0 &&
				e.Msg.Kind == wire.Result {
				set = x
			}
		case set == nil || e.From != wire.Server || e.Msg.Kind != wire.Notification ||
			e.Msg.Method != "notifications/message":
		case c.Transport != "stdio" && born[e.Stream] < set.Response.Seq && e.Stream != set.Response.Stream:
			// A message on another stream may have been sent before.
		case c.queued(e, set.Response):
		default:
			least, _ := severity(wire.At(set.Request.Msg.Params, "level"))
			level, ok := severity(wire.At(e.Msg.Params, "level"))
			if !ok {
				continue // the schema judges it
			}
			lets := func(other int) bool { return level >= other }
			if level < least && rec.trace.levels.Elsewhere(e.Conn, set.Request.At, e.At, lets) {
				rec.Note(id, wire.Server,
					"the level that one client sets seems to hold for all clients: a message of level "+
						LogLevels[level]+
						" came to a client that had set "+LogLevels[least])
				continue
			}
			rec.Check(level >= least, id, wire.Server,
				"a message of level "+LogLevels[level]+" came although the client has set the level "+LogLevels[least],
				set.Request, set.Response, e)
		}
	}
}

// Secrets and personal data in a log (server/utilities/logging#security) can only
// be found where they are known.
func judgeLogContents(c *Conversation, rec *Recorder) {
	secrets, personal := rec.options.Secrets, rec.options.Personal
	if len(secrets) == 0 && len(personal) == 0 {
		return
	}
	for _, e := range c.notifications(wire.Server, "notifications/message") {
		for _, v := range []struct {
			id, what string
			markers  []string
		}{
			{ids.LoggingSecurityNoCredentials, "a secret that the configuration names", secrets},
			{ids.LoggingSecurityNoPersonalData, "personal data that the configuration names", personal},
		} {
			if len(v.markers) > 0 {
				rec.Check(!mentions(e.Msg.Params, v.markers), v.id, wire.Server, "a log message holds "+v.what, e)
			}
		}
	}
}

// mentions reports whether a decoded value holds one of some texts, in a string
// or in the name of a member.
func mentions(v any, texts []string) bool {
	switch v := v.(type) {
	case string:
		return slices.ContainsFunc(texts, func(text string) bool { return text != "" && strings.Contains(v, text) })
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return mentions(item, texts) })
	case map[string]any:
		for name, member := range v {
			if mentions(name, texts) || mentions(member, texts) {
				return true
			}
		}
	}
	return false
}

// maxLoggers bounds how many names are remembered.
const maxLoggers = 10_000

// joints are the marks between words.
var joints = strings.NewReplacer("-", "", "_", "", " ", "")

// judgeLoggers judges that a logger does not go by two spellings
// (server/utilities/logging#implementation-considerations): names that differ in case and
// in the marks between words alone are taken for one.
func judgeLoggers(c *Conversation, rec *Recorder) {
	const id = ids.LoggingServerConsistentLoggers
	first := make(map[string]*wire.Event)
	told := make(map[string]bool)
	for _, e := range c.notifications(wire.Server, "notifications/message") {
		name, ok := wire.At(e.Msg.Params, "logger").(string)
		if !ok {
			continue
		}
		same := joints.Replace(strings.ToLower(name))
		before := first[same]
		switch {
		case before == nil && len(first) < maxLoggers:
			first[same] = e
		case before == nil || same == "" || told[name]:
		case wire.At(before.Msg.Params, "logger") == name:
			rec.Pass(id, wire.Server)
		default:
			told[name] = true
			rec.Fail(id, wire.Server, "the logger "+wire.Quote(name, 60)+
				" was spelled differently in an earlier message", before, e)
		}
	}
}
