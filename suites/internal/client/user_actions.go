package client

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// userActionScenarios are about decisions of the user. The client, or its user, has to be told what to do. A client
// that ignores the instructions is not judged: each scenario asks for different actions in turn, and judges only a
// client that performed some of them.
var userActionScenarios = []*client.Scenario{
	{
		Name: "acts/elicitation", UserActions: "elicitation=accept,decline,cancel",
		Requirements: []string{ids.ElicitationActionAccept, ids.ElicitationActionDecline, ids.ElicitationActionCancel},
		Shows:        []string{"elicitation.*", ids.SchemaElicitResult},
		Needs:        needsToAsk,
		Options:      client.Scripted(askActions),
		Judge:        judgeElicitationActions,
	},
	{
		Name: "acts/sampling", UserActions: "sampling=accept,reject",
		Requirements: []string{ids.SamplingErrorUserRejected},
		Needs:        needsToAsk,
		Options: client.Scripted(func(a *client.Asker) {
			if a.Has("sampling") {
				plain := sampling(nil)
				a.AskUser("sampling-accepted", "sampling/createMessage", plain)
				a.AskLike(samplingRejected, "sampling/createMessage", plain, plain)
			}
		}),
		Judge: judgeRejection,
	},
	{
		Name: "acts/roots", UserActions: "roots=add,modify,remove",
		Requirements: []string{ids.RootsListChangedEveryChange, ids.RootsListCurrent},
		Shows:        []string{ids.RootsListChangedNotify},
		Needs:        needsToAsk,
		Options:      client.Scripted(askChanges),
		Judge:        judgeChanges,
	},
	{
		Name: "acts/root-folder", UserActions: "roots=" + client.FolderPlaceholder,
		Requirements: []string{ids.RootsClientValidateAccessible, ids.RootsClientMonitorChanges},
		Shows:        []string{ids.SchemaListRootsResult},
		Needs:        needsToAsk,
		Options: func(run *client.ScenarioRun) server.Options {
			return client.Scripted(func(a *client.Asker) { askFolder(a, run.Folder) })(run)
		},
		Judge: judgeFolder,
	},
}

// actions lists the responses of a person to a form (client/elicitation#response-actions).
var actions = []string{"accept", "decline", "cancel"}

// ignoresInstructions is the reason for a client that has always done the same. Nothing follows from that for the
// user's decisions.
const ignoresInstructions = "the client does not do what MCPCONFORM_ACT says"

// askActions shows a form for each action, and one more for each that was refused with an error.
func askActions(a *client.Asker) {
	if !a.Has("elicitation") {
		return
	}
	refused := 0
	ask := func(id string) {
		if m := a.AskUser(id, "elicitation/create", form("string", "boolean")); m != nil &&
			m.Kind == wire.ErrorResponse {
			refused++
		}
	}
	for _, action := range actions {
		ask("elicitation-" + action)
	}
	for i := range refused {
		ask(formAgain(i))
	}
}

// formAgain returns the id of a further form, for forms that were refused before.
func formAgain(i int) string { return "elicitation-again-" + strconv.Itoa(i) }

// judgeLimited judges a client that refuses some forms with an error and otherwise follows the instructions. It
// reports whether the client is like that. A client may limit how often it is asked
// (client/elicitation#security-considerations) and refuse forms before the user sees them. The user then sees later
// forms as the first ones, and acts on them in the same order, or sees none.
func judgeLimited(t *client.T) bool {
	var shown []string
	refused := false
	answer := func(id string) {
		if x, ok := t.Answered(id); ok && x.Response.Msg.Kind == wire.ErrorResponse {
			refused = true
		} else if ok {
			action, _ := x.Result()["action"].(string)
			shown = append(shown, action)
		}
	}
	for _, action := range actions {
		answer("elicitation-" + action)
	}
	for i := range actions {
		answer(formAgain(i))
	}
	n := min(len(shown), len(actions))
	if !refused || !slices.Equal(shown[:n], actions[:n]) {
		return false
	}
	for i, action := range actions {
		if id := "elicitation.action." + action; i < n {
			t.Exercised(id)
		} else {
			t.Inconclusive("the client refuses every form with an error instead of acting as the user; it may "+
				"limit how often a server asks", id)
		}
	}
	return true
}

func judgeElicitationActions(t *client.T) {
	var ids []string
	came := make(map[string]bool)
	followed := 0
	shown := make(map[string]string) // what came, by what was asked for
	for _, action := range actions {
		ids = append(ids, "elicitation.action."+action)
		x, ok := t.Answered("elicitation-" + action)
		if !ok {
			continue
		}
		shown[action], _ = x.Result()["action"].(string)
		if x.Response.Msg.Kind == wire.ErrorResponse {
			shown[action] = "an error"
		}
		came[shown[action]] = true
		if shown[action] == action {
			followed++
		}
	}
	switch {
	case lacks(t, "elicitation", ids...):
		return
	case len(shown) == 0:
		return
	case len(came) == 1:
		t.Inconclusive(ignoresInstructions+": each form got "+wire.Quote(slices.Collect(maps.Keys(came))[0], 40),
			ids...)
		return
	case followed == 0:
		t.Inconclusive(ignoresInstructions+": no form got the action that it says", ids...)
		return
	case judgeLimited(t):
		return
	}
	for _, action := range actions {
		if x, ok := t.Answered("elicitation-" + action); ok {
			t.Check("elicitation.action."+action,
				Named("the form for which the user's action was "+action, x)).To(HaveMember("action", action))
		}
	}
}

// samplingRejected is the id of the sampling request that the user is meant to reject.
const samplingRejected = "sampling-rejected"

// judgeRejection judges the answer to a sampling request that the user rejected (client/sampling#error-handling).
func judgeRejection(t *client.T) {
	const id = ids.SamplingErrorUserRejected
	accepted, ok := t.Answered("sampling-accepted")
	rejected, both := t.Answered(samplingRejected)
	switch {
	case lacks(t, "sampling", id), !ok, !both:
	case rejected.Response.Msg.Kind != wire.ErrorResponse || accepted.Response.Msg.Kind != wire.Result:
		t.Inconclusive(ignoresInstructions+": both sampling requests got the same answer", id)
	case rejected.Error().Code != -1 && !controlled(t, samplingRejected):
		// The client may limit how often it is asked (client/sampling#security-considerations). Its user has not seen
		// the request then.
		if again, ok := t.Answered(samplingRejected + client.ControlSuffix); ok && again.Error() != nil &&
			again.Error().Code == -1 {
			t.Exercised(id)
			return
		}
		t.Inconclusive("the client refused the sampling request that the user was to reject, but the next one too, "+
			"so the reason may be another", id)
	default:
		// Only an example has the code.
		t.WarnUnless(id, Named("a sampling request that the user rejected", rejected)).To(HaveErrorCode(-1))
	}
}

// rootSteps are the changes that acts/roots asks for, one after each roots/list.
var rootSteps = []string{"add", "modify", "remove"}

func askChanges(a *client.Asker) {
	if !a.Has("roots") {
		return
	}
	log := a.Request.Session.Log()
	var before *wire.Message
	vain := 0
	for i := range len(rootSteps) + 1 {
		from := log.Len()
		list := a.AskUser(rootList(i), "roots/list", nil)
		if i > 0 && before != nil && list != nil &&
			rootChange(wire.At(before.Result, "roots"), wire.At(list.Result, "roots")) == "" && vain > 0 {
			return // neither a change nor a notification
		}
		if before = list; i == len(rootSteps) || !a.Has("roots.listChanged") {
			continue
		}
		ctx, cancel := context.WithTimeout(a.Request.Session.Context(), max(a.Patience/2, a.UserPatience-a.Patience))
		if _, err := log.Await(ctx, from, isRootChange); err != nil {
			vain++
		}
		cancel()
	}
}

func rootList(i int) string { return "roots-" + string(rune('0'+i)) }

func isRootChange(e *wire.Event) bool {
	return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "notifications/roots/list_changed"
}

// judgeChanges judges whether the client announces changes of its roots (client/roots#root-list-changes).
func judgeChanges(t *client.T) {
	const every, current = ids.RootsListChangedEveryChange, ids.RootsListCurrent
	if lacks(t, "roots", every, current) {
		return
	}
	c := t.Handshake()
	if c == nil || !c.Declared(wire.Client, "roots.listChanged") {
		t.Inconclusive("the client does not declare roots.listChanged", every, current)
		return
	}
	changes := changesBetween(t, c)
	words, differing := 0, 0
	for _, e := range c.Events {
		if isRootChange(e) {
			words++
		}
	}
	for _, one := range changes {
		if one.kind != "" {
			differing++
		}
	}
	follows := differing > 0 || words > rootChanges(t.Baseline)
	if !follows {
		t.Inconclusive(ignoresInstructions+": its roots stay the same", every, current)
		return
	}
	for _, one := range changes {
		switch {
		case one.kind != "":
			t.Exercised(current)
		case one.later:
			t.Violation(current, "roots/list is answered as before although a change was announced",
				one.was.Request, one.was.Response, one.after.Request, one.after.Response)
		}
	}
	for _, one := range changes {
		switch {
		case one.kind == "":
		case one.announced || words >= differing:
			t.Exercised(every) // over HTTP a notification may come before or after the change
		case words > 0:
			t.Violation(every, "the client sent no notification of this change: "+one.kind+" a root", one.was.Response,
				one.after.Response)
		}
	}
}

// change is the difference between two lists of roots.
type change struct {
	kind       string // "" when the list stayed the same
	announced  bool
	later      bool // announced after the first answer, which may hold a change that was announced before it
	was, after *judge.Exchange
}

// changesBetween returns the changes that acts/roots asked for, as far as the lists were answered.
func changesBetween(t *client.T, c *judge.Conversation) (changes []change) {
	for i := range rootSteps {
		was, ok := t.Answered(rootList(i))
		is, next := t.Answered(rootList(i + 1))
		if !ok || !next || was.Result() == nil || is.Result() == nil {
			break
		}
		one := change{was: was, after: is, kind: rootChange(was.Result()["roots"], is.Result()["roots"])}
		for _, e := range c.Events {
			between := was.Request.Seq < e.Seq && e.Seq < is.Request.Seq && e.Conn == was.Request.Conn &&
				e.Conn == is.Request.Conn
			if between && isRootChange(e) {
				one.announced = true
				one.later = one.later || e.Seq > was.Response.Seq
			}
		}
		changes = append(changes, one)
	}
	return changes
}

// rootChanges counts the announcements of changed roots.
func rootChanges(t *client.T) int {
	n := 0
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			if isRootChange(e) {
				n++
			}
		}
	}
	return n
}

// rootChange names the change between two lists of roots. It is "" if they have the same roots, in any order.
func rootChange(before, after any) string {
	was, is := sorted(before), sorted(after)
	switch {
	case slices.Equal(was, is):
		return ""
	case len(is) > len(was):
		return "add"
	case len(is) < len(was):
		return "remove"
	}
	return "modify"
}

// sorted returns the JSON of the items of a list in an order of their own.
func sorted(items any) []string {
	list, _ := items.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		text, _ := json.Marshal(item) // it was decoded from JSON
		texts[i] = string(text)
	}
	slices.Sort(texts)
	return texts
}

// askFolder removes the folder that the client offers as a root.
func askFolder(a *client.Asker, dir string) {
	if !a.Has("roots") {
		return
	}
	log := a.Request.Session.Log()
	there := a.AskUser("root-there", "roots/list", nil)
	if there == nil || !lists(wire.At(there.Result, "roots"), filepath.Base(dir)) {
		return
	}
	from := log.Len()
	if os.RemoveAll(dir) != nil {
		return
	}
	_, _ = log.Append(wire.Event{Kind: wire.KindNote, From: wire.Server,
		Note: "the folder " + filepath.Base(dir) + " was removed"})
	announces := a.Has("roots.listChanged")
	for i := range folderLists {
		if announces || i > 0 {
			// A client may look for changes only now and then.
			ctx, cancel := context.WithTimeout(a.Request.Session.Context(), a.Patience/2)
			if _, err := log.Await(ctx, from, isRootChange); err == nil {
				from, announces = log.Len(), false
			}
			cancel()
		}
		list := a.AskUser(folderList(i), "roots/list", nil)
		if list == nil || !announces && !lists(wire.At(list.Result, "roots"), filepath.Base(dir)) {
			return
		}
	}
}

// folderLists is how often the roots are listed after the folder was removed. The last list comes after more than
// five seconds, because a client that polls may look that late.
const folderLists = 3

func folderList(i int) string { return "root-gone-" + strconv.Itoa(i) }

// lists reports whether roots contain a folder with a name, which is unique.
func lists(roots any, name string) bool {
	return slices.ContainsFunc(wire.Items(roots), func(root any) bool {
		uri, _ := wire.At(root, "uri").(string)
		plain, err := url.PathUnescape(uri)
		return err == nil && path.Base(strings.ReplaceAll(plain, `\`, "/")) == name
	})
}

// judgeFolder judges how the client treats a root that no longer exists (client/roots#implementation-guidelines).
func judgeFolder(t *client.T) {
	const accessible, monitor = ids.RootsClientValidateAccessible, ids.RootsClientMonitorChanges
	if lacks(t, "roots", accessible, monitor) {
		return
	}
	there, ok := t.Answered("root-there")
	if !ok {
		return
	}
	var gone *judge.Exchange // the last list
	looks := 0
	for i := range folderLists {
		if x, ok := t.Answered(folderList(i)); ok {
			gone = x
			looks++
		}
	}
	if gone == nil || gone.Result() == nil {
		t.Inconclusive(ignoresInstructions+": it does not offer the folder as a root", accessible, monitor)
		return
	}
	told, late := false, false // before and after the last list
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			here := e.Conn == gone.Request.Conn
			if isRootChange(e) && (!here || e.Seq > there.Response.Seq) {
				before := here && e.Seq < gone.Request.Seq
				told, late = told || before, late || !before
			}
		}
	}
	c := t.Handshake()
	still := lists(gone.Result()["roots"], filepath.Base(t.Folder))
	silent := still && !told && !late
	switch { // the text says nothing of how often a client has to look
	case silent && looks < folderLists:
		t.Inconclusive("the client ended before it could notice that the folder was gone", accessible, monitor)
		return
	case still && !told && late:
		t.Inconclusive("the client noticed only after its last roots/list that the folder was gone", accessible)
	default:
		t.Check(accessible, still,
			gone.Events()...).To(BeFalseBecause("roots/list names a folder that no longer exists"))
	}
	if silent && c != nil && !c.Declared(wire.Client, "roots.listChanged") {
		t.Inconclusive("the client does not announce changes of its roots, and its lists do not tell whether it "+
			"watches them", monitor)
		return
	}
	t.Check(monitor, silent, gone.Events()...).
		To(BeFalseBecause("the folder of a root was removed, but neither a notification nor a later " +
			"roots/list shows it"))
}
