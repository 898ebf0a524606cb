package check

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/values"
)

// Bounds of the probe of tools.
const (
	maxProbed  = 20 // tools
	maxWatched = 20 // resources
	maxRead    = 8  // of these, to see what changes although no update comes
	// quickest and slowest bound how long a call takes during which a check can do
	// something else.
	quickest = 700 * time.Millisecond
	slowest  = 4 * time.Second
	// lateness is how long after the answer to a call an update may come that is due to it, and
	// maxSuspected how many calls are made once more to find the one that an update is due to.
	lateness     = 300 * time.Millisecond
	maxSuspected = 6
)

// probeToken is the progress token of the calls that probe tools.
const probeToken = "mcpconform-probe"

const updated = "notifications/resources/updated"

// observed holds the tool roles that a call of the tool shows, with a measure of how
// well the tool fits the role; 0 if it does not.
var observed = map[string]func(o *observation) int{
	"sampling":         func(o *observation) int { return o.methods["sampling/createMessage"] },
	"elicitation":      func(o *observation) int { return o.methods["elicitation/create"] },
	"roots":            func(o *observation) int { return o.methods["roots/list"] },
	"ping":             func(o *observation) int { return o.methods["ping"] },
	"progress":         func(o *observation) int { return o.progress },
	"log":              func(o *observation) int { return o.methods["notifications/message"] },
	"log-levels":       func(o *observation) int { return max(0, len(o.levels)-1) },
	"resource-link":    func(o *observation) int { return o.links },
	"tools-change":     func(o *observation) int { return o.methods["notifications/tools/list_changed"] },
	"resources-change": func(o *observation) int { return o.methods["notifications/resources/list_changed"] },
	"prompts-change":   func(o *observation) int { return o.methods["notifications/prompts/list_changed"] },
	"resource-update":  func(*observation) int { return 0 }, // an update may come after the answer: see updateResources
	"slow": func(o *observation) int {
		if o.took < quickest {
			return 0
		}
		return 1 + min(o.progress, 2)
	},
}

// observation is what came of a call.
type observation struct {
	took     time.Duration
	asked    *wire.Event
	answer   *wire.Event
	methods  map[string]int // of the server's own messages
	progress int            // notifications with the token of the call
	levels   map[any]bool   // of log messages
	links    int            // to resources, in the result
	updates  map[any]bool   // URIs of resources that were said to have changed
}

// made is a call that was made, and what came of it.
type made struct {
	call Call
	*observation
}

// probeTools calls each tool that may be called once, one after the other, if checks need tools in roles for which
// nobody named one. A call says more about a tool than its name. It skips the tools of a profile, which are known.
// All calls together take no longer than one answer may take. They are made in a session of their own unless one is
// given.
func (e *Engine) probeTools(ctx context.Context, checks []*Check, s *client.Session) {
	t := e.target
	missing := e.rolesWithoutTool(checks)
	tools := slices.DeleteFunc(t.Callable(), func(tool map[string]any) bool {
		name, _ := tool["name"].(string)
		return t.told[name]
	})
	if len(missing) == 0 || len(tools) == 0 || !t.Declares("tools") {
		return
	}
	if s == nil && e.exclusive.Load() && !e.processPerSession() {
		s = e.first
	}
	p := &toolProbe{Target: t, Session: s, missing: missing}
	if s == nil {
		var err error
		e.pool.expect(ofCapable)
		if p.Session, err = e.connect(ctx, "probe of tools", Capable()); err != nil {
			e.pool.give(ofCapable, nil)
			return // the checks say what is wrong
		}
		defer func() { e.leave(context.WithoutCancel(ctx), ofCapable, p.Session, p.subscribed) }()
	}
	ctx, stop := e.unlessDown(ctx)
	defer stop()
	if p.Session != e.first {
		if _, err := p.Initialize(ctx); err != nil {
			return
		}
	}
	// How long a process takes to start says nothing about its tools.
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	p.prepare(ctx)
	if p.callEach(ctx, tools) && p.changeLists(ctx) {
		p.updateResources(ctx)
	}
}

// rolesWithoutTool returns the roles that applicable checks need and that the settings name no tool for.
func (e *Engine) rolesWithoutTool(checks []*Check) (missing []string) {
	for role := range observed {
		_, known := e.target.Settings.ToolRoles[role]
		if !known && slices.ContainsFunc(checks, func(c *Check) bool {
			return e.inapplicable(c) == "" && slices.Contains(c.Needs.ToolRoles, role)
		}) {
			missing = append(missing, role)
		}
	}
	return missing
}

// toolProbe is a probe of the tools of a server.
type toolProbe struct {
	*Target
	*client.Session
	missing    []string       // roles
	subscribed []string       // URIs
	read       map[string]any // the contents of some of these, by URI
	silent     []*watched
	calls      []made
	quick      []Call // of these, those that took little time
}

// prepare makes the effects of tools show: it asks for all log messages, subscribes to resources, and reads resources
// and lists.
func (p *toolProbe) prepare(ctx context.Context) {
	if p.Capability("logging") {
		_, _ = p.Call(ctx, "logging/setLevel", map[string]any{"level": "debug"})
	}
	if slices.Contains(p.missing, "resource-update") && p.Capability("resources.subscribe") {
		resources := p.List("resources/list").Items
		for _, resource := range resources[:min(len(resources), maxWatched)] {
			uri, ok := resource["uri"].(string)
			if !ok {
				continue
			}
			x, err := p.Call(ctx, "resources/subscribe", map[string]any{"uri": uri})
			if err == nil && x.Result() != nil {
				p.subscribed = append(p.subscribed, uri)
			}
		}
	}
	p.read = readAll(ctx, p.Session, p.subscribed[:min(len(p.subscribed), maxRead)])
	p.silent = watchLists(ctx, p.Session, p.missing)
}

// callEach calls each tool and records the tool that fits a role best. It returns false if the session is useless from
// then on. The tools that were called before keep their roles.
func (p *toolProbe) callEach(ctx context.Context, tools []map[string]any) bool {
	p.Observed = make(map[string]Call)
	best := make(map[string]int)
	for _, tool := range tools[:min(len(tools), maxProbed)] {
		name, ok := tool["name"].(string)
		arguments, fits := p.Arguments(tool)
		if !p.Known(tool) {
			arguments, fits = ShortArguments(tool["inputSchema"])
		}
		if !ok || !fits {
			continue
		}
		call := Call{Tool: name, Arguments: arguments}
		o, err := observe(ctx, p.Session, call)
		if err != nil {
			return false
		}
		p.calls = append(p.calls, made{call, o})
		for _, role := range p.missing {
			if n := observed[role](o); n > best[role] {
				best[role], p.Observed[role] = n, call
			}
		}
		if o.took > 0 && o.took < quickest {
			p.quick = append(p.quick, call)
		}
	}
	return true
}

// changeLists finds the tools that change a list without a notification. A call may change several lists, and a further
// one may undo that. It returns false if the session is useless from then on.
func (p *toolProbe) changeLists(ctx context.Context) bool {
	p.silent = slices.DeleteFunc(p.silent, func(w *watched) bool {
		_, known := p.Observed[w.role]
		return known || !w.changed(ctx, p.Session)
	})
	for _, call := range p.quick {
		if len(p.silent) == 0 {
			break
		}
		if _, err := observe(ctx, p.Session, call); err != nil {
			return false
		}
		p.silent = slices.DeleteFunc(p.silent, func(w *watched) bool {
			if !w.changed(ctx, p.Session) {
				return false
			}
			p.Observed[w.role] = call
			return true
		})
	}
	return true
}

// updateResources finds the tool that changes a resource, as updates show that come with a call or soon after, and do
// not come without it.
func (p *toolProbe) updateResources(ctx context.Context) {
	if len(p.subscribed) == 0 {
		return
	}
	if len(p.calls) > 0 { // the last of them may still bring the update, if none has come so far
		limit, stop := context.WithTimeout(ctx, lateness)
		_, _ = p.Log().Await(limit, 0, func(e *wire.Event) bool { return updateFor(e) != "" })
		stop()
	}
	suspects := suspected(p.Session, p.calls)
	for _, m := range suspects[:min(len(suspects), maxSuspected)] {
		// Once may be due to a call from before.
		if once := m.causes(ctx, p.Session); once && m.causes(ctx, p.Session) {
			p.Observed["resource-update"] = m.call
			return
		}
	}
	if call, ok := silentChanger(ctx, p.Session, p.quick, p.read); ok {
		p.Observed["resource-update"] = call
	}
}

// readAll returns the contents of resources, by URI, as far as they can be read.
func readAll(ctx context.Context, s *client.Session, uris []string) map[string]any {
	contents := make(map[string]any)
	for _, uri := range uris {
		x, err := s.Call(ctx, "resources/read", map[string]any{"uri": uri})
		if err != nil {
			return contents
		}
		if now := x.Result()["contents"]; now != nil {
			contents[uri] = now
		}
	}
	return contents
}

// silentChanger returns the call that makes a resource change without an update, as the contents show that were read
// before all calls. It reads what has changed once more, since it may change all the time. If no contents have changed,
// it calls nothing again.
func silentChanger(ctx context.Context, s *client.Session, quick []Call, read map[string]any) (Call, bool) {
	changed := func() map[string]any {
		now := readAll(ctx, s, slices.Sorted(maps.Keys(read)))
		maps.DeleteFunc(now, func(uri string, contents any) bool { return reflect.DeepEqual(contents, read[uri]) })
		again := readAll(ctx, s, slices.Sorted(maps.Keys(now)))
		maps.DeleteFunc(now, func(uri string, contents any) bool { return !reflect.DeepEqual(contents, again[uri]) })
		return now
	}
	read = changed()
	for _, call := range quick {
		if len(read) == 0 {
			break
		}
		if o, err := observe(ctx, s, call); err != nil || len(o.updates) > 0 {
			break
		}
		if len(changed()) > 0 {
			return call, true
		}
	}
	return Call{}, false
}

// suspected returns the calls that may have caused the updates that came: those that were being made, the one
// with the most updates first, then those that were answered shortly before, the latest first.
func suspected(s *client.Session, calls []made) []made {
	during := slices.DeleteFunc(slices.Clone(calls), func(m made) bool { return len(m.updates) == 0 })
	slices.SortStableFunc(during, func(a, b made) int { return cmp.Compare(len(b.updates), len(a.updates)) })
	var before []made
	for _, m := range slices.Backward(calls) {
		if m.answer == nil || len(m.updates) > 0 {
			continue
		}
		for _, e := range s.Log().Events() {
			if uri := updateFor(e); uri != "" && e.Seq > m.answer.Seq && e.At-m.answer.At < lateness {
				m.updates[uri] = true
			}
		}
		if len(m.updates) > 0 {
			before = append(before, m)
		}
	}
	return append(during, before...)
}

// updateFor returns the URI of the resource that a message says has changed, or "".
func updateFor(e *wire.Event) string {
	if e.Kind != wire.KindMessage || e.From != wire.Server || e.Msg.Method != updated {
		return ""
	}
	uri, _ := wire.At(e.Msg.Params, "uri").(string)
	return uri
}

// leave ends the subscriptions of a session and leaves it to checks that use it in turn,
// unless something is left undone in it.
func (e *Engine) leave(ctx context.Context, k key, s *client.Session, subscribed []string) {
	for _, uri := range subscribed {
		if x, err := s.Call(ctx, "resources/unsubscribe", map[string]any{"uri": uri}); err != nil || x.Result() == nil {
			e.close(ctx, s)
			e.pool.give(k, nil)
			return
		}
	}
	var a attempt
	if _, ok := reusable(s); !ok {
		a.lost = true
	}
	e.putBack(ctx, k, s, &a)
}

// watched is a list that may change without a notification.
type watched struct {
	role, method string
	offered      []string // names or URIs, sorted
}

// watchLists reads the lists for which the server declares listChanged, if no call
// is known that changes them.
func watchLists(ctx context.Context, s *client.Session, missing []string) []*watched {
	var lists []*watched
	for _, feature := range []string{"tools", "resources", "prompts"} {
		w := &watched{role: feature + "-change", method: feature + "/list"}
		if slices.Contains(missing, w.role) && s.Capability(feature+".listChanged") {
			if list := ReadList(ctx, s, w.method); list.Err == nil {
				w.offered = offered(list)
				lists = append(lists, w)
			}
		}
	}
	return lists
}

// changed reports whether the list offers other things than when it was last read. Other members, such as a time, may
// change with each reading.
func (w *watched) changed(ctx context.Context, s *client.Session) bool {
	list := ReadList(ctx, s, w.method)
	now := offered(list)
	if list.Err != nil || slices.Equal(now, w.offered) {
		return false
	}
	w.offered = now
	return true
}

func offered(list *List) []string {
	var all []string
	for _, item := range list.Items {
		uri, _ := item["uri"].(string)
		name, _ := item["name"].(string)
		all = append(all, cmp.Or(uri, name))
	}
	slices.Sort(all)
	return all
}

// observe makes a call and returns what came of it. A call that takes too long
// is cancelled; an error says that the session is useless from then on.
func observe(ctx context.Context, s *client.Session, call Call) (*observation, error) {
	params := call.Params()
	params["_meta"] = map[string]any{"progressToken": probeToken}
	p, err := s.Start(ctx, "tools/call", params)
	if err != nil {
		return nil, err
	}
	o := newObservation()
	limit, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	end, err := s.Log().Await(limit, p.Request.Seq+1, p.Answers)
	if err != nil {
		err := s.Notify(ctx, "notifications/cancelled", map[string]any{"requestId": json.RawMessage(p.ID.String())})
		return o, err
	}
	if err := s.Fence(ctx); err != nil {
		return nil, err
	}
	o.took, o.asked, o.answer = end.At-p.Request.At, p.Request, end
	o.noteSince(s, p.Request.Seq)
	blocks, _ := wire.At(end.Msg.Result, "content").([]any)
	for _, block := range blocks {
		if wire.At(block, "type") == "resource_link" {
			o.links++
		}
	}
	return o, nil
}

func newObservation() *observation {
	return &observation{methods: make(map[string]int), levels: make(map[any]bool), updates: make(map[any]bool)}
}

// causes makes a call once more, and reports whether it brings an update that came with it or after it before. A
// resource that changes by itself may have done so just then: it does not do so with this call as well, or does it
// without one, in the time that this takes.
func (m *made) causes(ctx context.Context, s *client.Session) bool {
	mark := s.Log().Len()
	again, err := observe(ctx, s, m.call)
	if err != nil || again.asked == nil {
		return false
	}
	limit, stop := context.WithTimeout(ctx, lateness)
	defer stop()
	e, err := s.Log().Await(limit, mark, func(e *wire.Event) bool { return m.updates[updateFor(e)] })
	if err != nil {
		return false
	}
	alone, mark := newObservation(), s.Log().Len()
	if !pause(ctx, max(again.took, e.At-again.asked.At)) || s.Fence(ctx) != nil {
		return false
	}
	alone.noteSince(s, mark)
	return !alone.updates[updateFor(e)]
}

// noteSince notes what the server has sent since a mark of the log.
func (o *observation) noteSince(s *client.Session, mark int) {
	for _, e := range s.Log().Events()[mark:] {
		if e.Kind == wire.KindMessage && e.From == wire.Server {
			o.note(e.Msg)
		}
	}
}

func (o *observation) note(m *wire.Message) {
	if m.Method == "" {
		return
	}
	o.methods[m.Method]++
	switch m.Method {
	case "notifications/progress":
		if wire.At(m.Params, "progressToken") == probeToken {
			o.progress++
		}
	case updated:
		if uri, ok := wire.At(m.Params, "uri").(string); ok {
			o.updates[uri] = true
		}
	case "notifications/message":
		if level, ok := wire.At(m.Params, "level").(string); ok {
			o.levels[level] = true
		}
	}
}

// ToolFor returns the call for a tool role: the tool that the user or a profile names, or else a tool that was seen
// to play the role. It waits until the tools were tried.
func (t *Target) ToolFor(name string) (Call, bool) {
	if call, ok := t.Settings.ToolRoles[name]; ok {
		return call, true
	}
	if t.probed != nil {
		<-t.probed
	}
	call, ok := t.Observed[name]
	return call, ok
}

// ShortArguments returns arguments that fit the inputSchema of a tool and set the
// duration to two seconds if it has an argument for that.
func ShortArguments(input any) (map[string]any, bool) {
	value, ok := values.Valid(input)
	arguments, isObject := value.(map[string]any)
	if !ok || !isObject {
		return nil, false
	}
	properties, _ := wire.At(input, "properties").(map[string]any)
	for _, name := range []string{"duration", "seconds"} {
		if _, ok := properties[name]; !ok {
			continue
		}
		short := map[string]any{name: json.Number("2")}
		for k, v := range arguments {
			if k != name {
				short[k] = v
			}
		}
		if tool, err := schema.CompileTool(input); err == nil && len(tool.Validate(short)) == 0 {
			return short, true
		}
	}
	return arguments, true
}
