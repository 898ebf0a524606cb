package client

import (
	"fmt"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// ScriptScenario returns the scenario in which the server follows a script of the user. It serves the given
// requirements. The client breaks the first of them if it does something that the script does not expect. The error
// says that a script is not for clients.
func ScriptScenario(s *script.Script, requirements ...string) (*client.Scenario, error) {
	if _, err := mockserver.RunScript(new(server.Options), s, func(string) {}); err != nil {
		return nil, err
	}
	var course *mockserver.ScriptRun
	return &client.Scenario{
		Name: scriptPrefix + s.Name, Requirements: requirements, Transports: s.Transports,
		Options: func(*client.ScenarioRun) server.Options {
			var o server.Options
			// The same call succeeded above.
			course, _ = mockserver.RunScript(&o, s, func(string) {})
			o.Behaviour.Breaks = append(o.Behaviour.Breaks, judge.Anything)
			return o
		},
		Judge: func(t *client.T) {
			if course != nil {
				judgeScript(t, s, course.Courses(), requirements)
			}
		},
	}, nil
}

// scriptPrefix begins the names of the scenarios that run scripts of the user.
const scriptPrefix = "script/"

// judgeScript judges the sessions of a client by a script. A client that never sent the first message of the script
// is not judged. After that it has to do everything that the script expects.
func judgeScript(t *client.T, s *script.Script, courses []mockserver.Course, requirements []string) {
	if c := t.Handshake(); c != nil {
		for _, capability := range s.Needs {
			if !c.Declared(wire.Client, capability) {
				for _, id := range requirements {
					t.Recorder().Skip(id, wire.Client, "the client does not declare "+capability)
				}
				return
			}
		}
	}
	finished, missing := false, ""
	var short *mockserver.Course // the session in which the script came furthest and stopped
	for i, c := range courses {
		switch {
		case c.Finished:
			finished = true
		case c.GivenUp != "":
			missing = c.GivenUp
		case c.Nearest != nil && (c.Nearest.IsResponse() || c.Awaits == "initialize" ||
			c.Awaits == "notifications/initialized"):
			// The script asked the client for this, and the client answered something else.
			t.Violation(requirements[0], fmt.Sprintf("%s:%d: what came for %s is not what is expected: %s", s.File,
				c.Line, c.Awaits, c.Mismatch), event(t, c.Log, c.Nearest))
		case c.Begun && (short == nil || c.Line >= short.Line):
			short = &courses[i]
		case !c.Begun && missing == "":
			missing = fmt.Sprintf("%s:%d: the client never sent %s, with which the script begins%s", s.File, c.Line,
				c.Awaits, nearest(c))
		}
	}
	switch {
	case t.HasFindings(requirements[0]):
	case finished:
		t.Exercised(requirements...)
	case short != nil:
		t.Violation(requirements[0], fmt.Sprintf("%s:%d: the session ended before %s came%s", s.File, short.Line,
			short.Awaits, nearest(*short)),
			append(client.LastEvents(conversation(t, short.Log), 4), event(t, short.Log, short.Nearest))...)
	case missing != "":
		t.Inconclusive(missing, requirements...)
	}
}

func nearest(c mockserver.Course) string {
	if c.Nearest == nil {
		return ""
	}
	return "; one came, but " + c.Mismatch
}

// conversation returns the conversation of a log, or nil.
func conversation(t *client.T, l *wire.Log) *judge.Conversation {
	for _, c := range t.Conversations {
		if c.Log == l {
			return c
		}
	}
	return nil
}

// event returns the event that brought a message, or nil.
func event(t *client.T, l *wire.Log, m *wire.Message) *wire.Event {
	if c := conversation(t, l); c != nil && m != nil {
		for _, e := range c.Messages {
			if e.From == wire.Client && string(e.Msg.Raw) == string(m.Raw) {
				return e
			}
		}
	}
	return nil
}
