package server

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// noResource is a URI that no server has, of a scheme that none knows.
const noResource = "mcpconform-none://no/such/resource"

// These constants bound the reads on one server.
const (
	maxRead       = 20 // resources
	maxTemplates  = 10
	maxExpansions = 3 // of one template
)

// server/resources
var resourceChecks = []*check.Check{
	{
		Name:         "resources/list",
		Requirements: []string{ids.ResourcesListAnswered},
		Needs:        check.Needs{Server: "resources", Served: true},
		Body:         func(t *check.T) { listed(t, "resources/list") },
	},
	{
		Name:         "resources/templates",
		Requirements: []string{ids.ResourcesTemplatesAnswered},
		Needs:        check.Needs{Server: "resources"},
		Body: func(t *check.T) {
			list := t.Target.List("resources/templates/list")
			t.Must(list.Err)
			if len(list.Pages) > 0 && refusedWith(list.Pages[0], -32601) {
				t.Show(list.Pages[0].Events()...)
				t.Warning(ids.ResourcesTemplatesAnswered,
					"the server declares resources, but does not know resources/templates/list")
				return
			}
			listed(t, "resources/templates/list")
		},
	},
	{
		Name:         "resources/read",
		Requirements: []string{ids.ResourcesReadAnswered},
		Needs:        check.Needs{Server: "resources"},
		Body: func(t *check.T) {
			// Blobs are read twice: a size is judged only if two reads agree.
			unknown := t.Call("resources/read", map[string]any{"uri": noResource})
			read := 0
			for _, uri := range resourceURIs(t, t.Items(maxRead)) {
				strange := func(x *client.Exchange) bool {
					return refusedWith(x, -32601, -32002) || refusedAlike(x, unknown, noResource, uri)
				}
				x := t.Call("resources/read", map[string]any{"uri": uri})
				if strange(x) {
					if !stillListed(t, "resources/list", "uri", uri) {
						t.Note("the resource %s was no longer listed when it was read", wire.Quote(uri, 60))
						continue
					}
					x = t.Call("resources/read", map[string]any{"uri": uri})
				}
				switch problem := x.Error(); {
				case strange(x):
					t.Fail("the listed resource %s is refused like one that does not exist: %s", wire.Quote(uri, 60),
						Describe(x))
				case problem != nil:
					t.Note("the listed resource %s could not be read: %s", wire.Quote(uri, 60), Describe(x))
				case x.Result() != nil:
					read++
					if contents, _ := x.Result()["contents"].([]any); len(contents) == 1 &&
						at(contents[0], "blob") != nil {
						t.Call("resources/read", map[string]any{"uri": uri})
					}
				}
			}
			if read == 0 {
				t.Inconclusive("the server lists no resource that can be read")
			}
		},
	},
	{
		Name:         "resources/template-expansions",
		Requirements: []string{ids.ResourcesTemplateConstructsURIs},
		Needs:        check.Needs{Server: "resources"},
		Body: func(t *check.T) {
			// Only values that the server itself suggests are sure to fit.
			alike := func(x *client.Exchange, uri string) bool {
				return x.Error() != nil && refusedAlike(x, t.Call("resources/read", map[string]any{"uri": noResource}),
					noResource, uri)
			}
			found, listed := 0, templates(t)
			for _, template := range listed[:t.Items(len(listed))] {
				missing := 0
				uris, suggested := expansions(t, template)
				uris = uris[:t.Most(len(uris), 1)]
				for _, uri := range uris {
					if problem := schema.CheckFormat("uri", uri); problem != "" {
						if !suggested && constructs(template) {
							continue // the value was ours
						}
						t.Fail("the template %s gives %s, which is %s", wire.Quote(template, 60), wire.Quote(uri, 60),
							problem)
					}
					x := t.Call("resources/read", map[string]any{"uri": uri})
					if hasContents(x) {
						found++
					} else if refusedWith(x, -32002) || suggested && alike(x, uri) {
						missing++
					}
				}
				if suggested && missing == len(uris) && len(filledVariables(template)) == 1 {
					t.Fail("the server does not find a resource for the template %s, filled in with values that "+
						"it suggests itself",
						wire.Quote(template, 60))
				}
			}
			if found == 0 {
				t.Inconclusive("no template could be filled in to the URI of a resource")
			}
		},
	},
	{
		Name:         "resources/template-mime-type",
		Requirements: []string{ids.ResourcesTemplateMimeTypeUniform},
		Needs:        check.Needs{Server: "resources"},
		Body: func(t *check.T) {
			// A template's type holds for all resources that it matches.
			compared := 0
			for _, item := range t.Target.List("resources/templates/list").Items {
				template, _ := item["uriTemplate"].(string)
				stated, ok := item["mimeType"].(string)
				if !ok || template == "" || schema.CheckFormat("uri-template", template) != "" ||
					compared >= t.Most(maxRead, 2) {
					continue
				}
				uris, _ := expansions(t, template)
				for _, uri := range uris[:t.Most(min(len(uris), 2), 1)] {
					if schema.CheckFormat("uri", uri) != "" {
						continue // another check sees to that
					}
					x := t.Call("resources/read", map[string]any{"uri": uri})
					contents, _ := x.Result()["contents"].([]any)
					// Several contents may be sub-resources that the template does not match.
					if len(contents) != 1 || at(contents[0], "uri") != uri {
						continue
					}
					if actual, ok := at(contents[0], "mimeType").(string); ok {
						compared++
						if essence(actual) != essence(stated) {
							t.Fail("the template states the type %s, but %s has the type %s", quote(stated),
								wire.Quote(uri, 60), quote(actual))
						}
					}
				}
			}
			if compared == 0 {
				t.Inconclusive("no template with a mimeType could be filled in to the URI of a resource")
			}
		},
	},
	{
		Name:         "resources/not-found",
		Requirements: []string{ids.ResourcesErrorNotFoundCode},
		Needs:        check.Needs{Server: "resources"},
		Families:     []string{"uris-unknown"},
		Body: func(t *check.T) {
			x := t.Call("resources/read", map[string]any{"uri": noResource})
			if hasContents(x) && anythingMatches(t) {
				t.Inconclusive("a template of the server matches every URI")
			}
			if nothingToServe(t, x) {
				t.Skip("the server has no resources, and does not serve resources/read")
			}
			t.Expect(x).To(HaveErrorCode(-32002))
			if !anythingMatches(t) {
				t.Vary(noResources(t), func(m family.Member) { notFound(t, m) })
				t.Clear()
			}
			// So is one of a scheme that the server knows, beside what it has.
			for _, uri := range besideListed(t) {
				if x := t.Call("resources/read", map[string]any{"uri": uri}); x.Error() != nil {
					t.Expect(x).To(HaveErrorCode(-32002), "for a resource beside those of the list")
				}
			}
			// A text that is not a URI is an invalid parameter as well (docs/positions.md, no-uri-code).
			for _, uri := range []string{"", "mcpconform no uri"} {
				if x := t.Call("resources/read", map[string]any{"uri": uri},
					client.Deliberately("*")); x.Error() != nil {
					t.Expect(x).To(HaveErrorCode(-32002, -32602))
				}
			}
		},
	},
	{
		Name:         "resources/invalid-uris",
		Requirements: []string{ids.ResourcesSecurityValidateURIs},
		Needs:        check.Needs{Session: check.Own, Server: "resources"},
		Body: func(t *check.T) {
			known := resourceURIs(t, 1<<16)
			t.ExcuseSilence() // a server that refuses a URI without a word has validated it
			read := func(uri string) *client.Exchange {
				return t.Call("resources/read", map[string]any{"uri": uri}, client.Deliberately("*"))
			}
			for _, uri := range slices.Concat([]string{"", "mcpconform no uri", "://", "../../../../etc/passwd"},
				climbing(t), []string{"\u0000"}) {
				if slices.Contains(known, uri) || anythingMatches(t) {
					continue
				}
				x := read(uri)
				if hasContents(x) && (leaks(x) || !isClimbing(uri) || !hasContents(read(beside(uri)))) {
					t.Violation(ids.ResourcesSecurityValidateURIs,
						"the server returned contents for "+wire.Quote(uri, 80), x.Events()...)
				}
			}
			t.Clear()
			takenForPatterns(t, known)
			t.Fenced()
			// The control: the server still serves a valid URI.
			for _, uri := range known[:min(len(known), 1)] {
				t.Expect(t.Call("resources/read", map[string]any{"uri": uri})).To(BeAnswered(),
					"with the URI of a listed resource, after invalid ones")
			}
		},
	},
	{
		Name:         "resources/subscribe",
		Requirements: []string{ids.ResourcesSubscribeAccepted, ids.ResourcesUnsubscribeAccepted},
		Shows: []string{ids.BaseResponsePresent, ids.BaseErrorCodeInteger, ids.BaseResponseResultOrError,
			ids.SchemaSubscribeResult, ids.SchemaUnsubscribeResult, ids.BaseResponseResultObject,
			ids.SSEServerResponsesOnStream, ids.HTTPServerGetNoResponse},
		Needs: check.Needs{Session: check.Own, Server: "resources.subscribe"},
		Body: func(t *check.T) {
			// Some resources may never change, so that there is nothing to subscribe to. Those of templates are not
			// listed.
			all := resourceURIs(t, 1<<16)
			if len(all) == 0 {
				t.Inconclusive("the server lists no resource to subscribe to")
			}
			tried := all[:min(len(all), maxRead)]
			others := len(all) > len(tried) || t.Target.List("resources/list").Err != nil
			for i := 0; i < len(tried); i++ {
				t.Clear()
				uri := tried[i]
				params := map[string]any{"uri": uri}
				x := t.Call("resources/subscribe", params)
				if x.Result() == nil && !refusedWith(x, -32601) {
					if i == len(all)-1 && !others {
						var filled []string
						filled, others = filledIn(t)
						tried = append(tried, filled...)
					}
					if i < len(tried)-1 {
						continue
					}
					if others {
						t.Inconclusive("the server refuses subscriptions to %d of its resources, but may grant "+
							"them to others",
							len(tried))
					}
				}
				t.Expect(x).To(HaveResult(), "for the resource %s, as for each before it", wire.Quote(uri, 60))
				t.About(ids.ResourcesUnsubscribeAccepted)
				t.Expect(t.Call("resources/unsubscribe", params)).To(HaveResult(), "after a subscription")
				// The server may grant or refuse a subscription to an unknown resource. The rules judge the form of a
				// refusal.
				t.Clear()
				t.About(ids.ResourcesSubscribeAccepted)
				params = map[string]any{"uri": noResource}
				if t.Call("resources/subscribe", params).Result() != nil {
					t.Call("resources/unsubscribe", params)
				}
				return
			}
		},
	},
	{
		Name: "resources/updated",
		Requirements: []string{
			ids.ResourcesUpdatedSent, ids.ResourcesUpdatedOnlySubscribed, ids.ResourcesUpdatedEndsWithUnsubscribe,
		},
		Shows: []string{ids.SchemaResourceUpdatedNotification},
		Needs: check.Needs{Session: check.Own, Server: "resources.subscribe", ToolRoles: []string{"resource-update"},
			Lane: check.Waiting},
		Body: resourceUpdates,
	},
	{
		Name:         "resources/list-changed",
		Requirements: []string{ids.ResourcesListChangedSent},
		Shows:        []string{ids.SchemaReadResourceResult},
		Needs:        changing("resources"),
		Body:         func(t *check.T) { listChanged(t, "resources") },
	},
}

// resourceUpdates changes a resource before, during and after a subscription.
// The rules find notifications at the wrong time.
func resourceUpdates(t *check.T) {
	call, ok := t.Target.ToolFor("resource-update")
	if !ok {
		selfChanging(t)
		return
	}
	u := &updating{T: t, call: call, uris: updatable(t, call)}
	perform(t, call)
	u.subscribe()
	mark, e, err := u.first()
	t.Show(e)
	if timedOut(err) {
		u.missing()
	}
	t.Must(err)
	// How long an update takes that should not come.
	lag := min(3*(e.At-t.Session.Log().Events()[mark].At), judge.Crossing)
	changed := ""
	if uri, ok := at(e.Msg.Params, "uri").(string); ok && slices.Contains(u.subscribed, uri) {
		changed = uri
		if u.early == nil || reflect.DeepEqual(u.early, u.before[uri]) {
			misnamed(t, e, u.before, u.subscribed)
			u.tooEarly(e, uri)
		}
		if t.Further() {
			t.Clear()
			updatedAgain(t, call, uri, "")
			t.Clear()
			u.subscribed = updatedBeside(t, call, uri, u.subscribed)
			updatedElsewhere(t, call, uri)
			subscribedTwice(t, call, uri)
		}
	}
	t.About(ids.ResourcesUnsubscribeAccepted)
	settle(t)
	ended := make(map[string]bool) // by URI
	for _, uri := range u.subscribed {
		ended[uri] = t.Call("resources/unsubscribe", map[string]any{"uri": uri}).Result() != nil
	}
	mark = t.Mark()
	perform(t, call)
	t.Fence()
	t.Pause(lag)
	if !updatedSince(t, t.Since(mark), changed, ended) && ended[changed] && t.Further() {
		updatedBesides(t, changed, func() { perform(t, call); t.Pause(lag) })
		subscribedAnew(t, call, changed)
	}
}

// updating changes resources by a call.
type updating struct {
	*check.T
	call             check.Call
	uris, subscribed []string
	before           map[string]any // the contents before the last call
	early            any            // those of the updated resource when the update came during the call, or nil
	restless         string         // a resource that was seen to change without the call, or ""
}

func (u *updating) read() map[string]any {
	all := make(map[string]any)
	for _, uri := range u.uris {
		all[uri] = contents(u.T, uri)
	}
	return all
}

// subscribe reads the resources and subscribes to those that it can.
func (u *updating) subscribe() {
	u.before = u.read()
	for _, uri := range u.uris {
		if u.Call("resources/subscribe", map[string]any{"uri": uri}).Result() != nil {
			u.subscribed = append(u.subscribed, uri)
		}
	}
	if len(u.subscribed) == 0 {
		u.Inconclusive("no subscription was accepted")
	}
}

// first makes the call and returns the first update after a mark in the log. A resource that changes all the time, such
// as a clock, would hide a missing update: first ends the subscription to that and makes the call again.
func (u *updating) first() (mark int, e *wire.Event, err error) {
	for {
		mark, u.early = u.Mark(), nil
		told := func(e *wire.Event) bool { return tells(e, "notifications/resources/updated") }
		performReading(u.T, u.call, told, func(update *wire.Event) {
			if uri, ok := at(update.Msg.Params, "uri").(string); ok && slices.Contains(u.subscribed, uri) {
				u.early = contents(u.T, uri)
			}
		})
		e, err = u.Session.AwaitNotification(u.Context, mark, "notifications/resources/updated")
		if err != nil {
			return mark, e, err
		}
		uri, _ := at(e.Msg.Params, "uri").(string)
		i := slices.Index(u.subscribed, uri)
		if i < 0 || len(u.subscribed) == 1 || !changesItself(u.T, uri) {
			return mark, e, nil
		}
		u.restless = uri
		u.Call("resources/unsubscribe", map[string]any{"uri": uri})
		u.subscribed = slices.Delete(u.subscribed, i, i+1)
		u.before = u.read()
	}
}

// missing judges that no update came, and ends the check. The control is as long a wait without the call: a resource
// that differs at each reading, such as a clock, shows nothing.
func (u *updating) missing() {
	after := u.read()
	changed := func(uri string) bool {
		return u.before[uri] != nil && after[uri] != nil && !reflect.DeepEqual(u.before[uri], after[uri])
	}
	if !slices.ContainsFunc(u.subscribed, changed) {
		if u.restless != "" {
			u.Disturbed("the resource %s changes without the tool %q as well", wire.Quote(u.restless, 60), u.call.Tool)
		}
		u.Inconclusive("the tool %q changed none of the resources that could be subscribed to", u.call.Tool)
	}
	needsListening(u.T)
	if e, err := u.Session.AwaitNotification(u.Context, u.Mark(),
		"notifications/resources/updated"); !timedOut(err) {
		u.Show(e)
		u.Must(err)
		u.Inconclusive("notifications/resources/updated came only after %v; %s", 2*u.Session.Options.Timeout,
			ending.Raise(ending.Timeout))
	}
	later := u.read()
	i := slices.IndexFunc(u.subscribed, func(uri string) bool {
		return changed(uri) && reflect.DeepEqual(after[uri], later[uri])
	})
	if i < 0 {
		u.Inconclusive("the resources that changed while the tool %q was called change without it as well", u.call.Tool)
	}
	u.Fail("the resource %s changed while the client was subscribed to it, but notifications/resources/updated "+
		"did not come",
		wire.Quote(u.subscribed[i], 60))
}

// updatable returns the resources that a call may change.
func updatable(t *check.T, call check.Call) []string {
	for _, name := range slices.Sorted(maps.Keys(call.Arguments)) {
		if uri, ok := call.Arguments[name].(string); ok && schema.CheckFormat("uri", uri) == "" {
			return []string{uri} // the call names the resource
		}
	}
	return resourceURIs(t, maxRead)
}

// updatedResources returns the resources that changed by word of the server to any client, or all that are listed.
func updatedResources(t *check.T) []string {
	all := resourceURIs(t, maxRead)
	told := slices.DeleteFunc(slices.Clone(all), func(uri string) bool {
		return !slices.ContainsFunc(t.Logs(), func(l *wire.Log) bool {
			return slices.ContainsFunc(l.Events(), func(e *wire.Event) bool { return updates(e, uri) })
		})
	})
	if len(told) > 0 {
		return told
	}
	return all
}

// misnamed ends the body if an update names the wrong resource: the named one is as before, another subscribed one
// has changed, and no update comes for it.
func misnamed(t *check.T, update *wire.Event, before map[string]any, subscribed []string) {
	named, _ := at(update.Msg.Params, "uri").(string)
	if before[named] == nil || !reflect.DeepEqual(before[named], contents(t, named)) {
		return
	}
	for _, uri := range subscribed {
		after := contents(t, uri)
		if uri == named || before[uri] == nil || after == nil || reflect.DeepEqual(before[uri], after) {
			continue
		}
		e, err := t.Session.AwaitEvent(t.Context, update.Seq, "an update of "+wire.Quote(uri, 60),
			func(e *wire.Event) bool { return updates(e, uri) })
		t.Show(e)
		switch {
		case !timedOut(err):
			t.Must(err)
			return
		case !listensIn(t.Session), !reflect.DeepEqual(after, contents(t, uri)): // it changes by itself
			continue
		}
		t.Fail("the resource %s changed while the client was subscribed to it, but notifications/resources/updated "+
			"named %s, which has not changed",
			wire.Quote(uri, 60), wire.Quote(named, 60))
	}
}

// tooEarly fails a server whose update came before the change: a client that reads the resource at once keeps the old
// contents.
func (u *updating) tooEarly(update *wire.Event, uri string) {
	if late := contents(u.T, uri); u.early == nil || late == nil || reflect.DeepEqual(u.early, late) ||
		toldLater(u.T, update, func(e *wire.Event) bool { return updates(e, uri) }) ||
		!reflect.DeepEqual(late, contents(u.T, uri)) { // it changes by itself
		return
	}
	u.Show(update)
	u.Fail("the resource %s had not changed yet when notifications/resources/updated came; it changed later "+
		"in the call without another notification",
		wire.Quote(uri, 60))
}

// updates reports whether an event tells of a change of a resource, or of a part of it.
func updates(e *wire.Event, uri string) bool {
	if !tells(e, "notifications/resources/updated") {
		return false
	}
	named, _ := at(e.Msg.Params, "uri").(string)
	return named == uri || within(named, uri)
}

// within reports whether a resource is a part of another one, by their URIs.
func within(part, uri string) bool { return strings.HasPrefix(part, strings.TrimSuffix(uri, "/")+"/") }

// updatedSince judges the updates of resources, and of their parts, that came for a change which was made after the
// client had unsubscribed from them. It reports whether any came.
func updatedSince(t *check.T, since []*wire.Event, changed string, ended map[string]bool) bool {
	came := false
	for _, uri := range slices.Sorted(maps.Keys(ended)) {
		i := slices.IndexFunc(since, func(e *wire.Event) bool {
			return uri == changed && updateOf(e, uri)
		}) // others may change by themselves
		j := slices.IndexFunc(since, func(e *wire.Event) bool {
			part, _ := at(e.Msg.Params, "uri").(string)
			return e.Msg.Method == "notifications/resources/updated" && within(part, uri) && !ended[part]
		})
		switch {
		case !ended[uri]:
		case i >= 0:
			t.Violation(ids.ResourcesUpdatedEndsWithUnsubscribe,
				"an update of "+wire.Quote(uri, 60)+
					" came for a change that was made after the client had unsubscribed from it", since[i])
		case j >= 0:
			t.Violation(ids.ResourcesUpdatedOnlySubscribed,
				"an update of a part of "+wire.Quote(uri, 60)+" came after the client had unsubscribed from that",
				since[j])
		}
		came = came || i >= 0 || j >= 0
	}
	return came
}

// settle waits as long as a server may take to announce a change. A later notification then belongs to a later
// change.
func settle(t *check.T) { t.Pause(judge.Crossing) }

// subscribedAnew subscribes to a resource once more after the subscription to it has ended.
func subscribedAnew(t *check.T, call check.Call, uri string) {
	t.Clear()
	params := map[string]any{"uri": uri}
	if uri == "" || t.Call("resources/subscribe", params).Result() == nil {
		return
	}
	t.About(ids.ResourcesUpdatedSent)
	updatedAgain(t, call, uri, " after it had unsubscribed and subscribed again,")
	t.About(ids.ResourcesUnsubscribeAccepted)
	t.Call("resources/unsubscribe", params)
}

// contents reads a resource. Without a result, it returns nil.
func contents(t *check.T, uri string) any {
	return t.Call("resources/read", map[string]any{"uri": uri}).Result()["contents"]
}

// changesItself reports whether a resource differs when it is read twice.
func changesItself(t *check.T, uri string) bool {
	return !reflect.DeepEqual(contents(t, uri), contents(t, uri))
}

// updateOf reports whether a message says that a resource has changed.
func updateOf(e *wire.Event, uri string) bool {
	return e.Msg.Method == "notifications/resources/updated" && at(e.Msg.Params, "uri") == uri
}

// updatedBesides makes a change of a resource while the client is subscribed to another
// one alone, which is not its parent: an update may name a sub-resource
// (schema#resourceupdatednotification).
func updatedBesides(t *check.T, changed string, change func()) {
	i := slices.IndexFunc(resourceURIs(t, maxRead),
		func(uri string) bool { return !strings.HasPrefix(changed, strings.TrimSuffix(uri, "/")) })
	if changed == "" || i < 0 {
		return
	}
	t.Clear()
	params := map[string]any{"uri": resourceURIs(t, maxRead)[i]}
	if t.Call("resources/subscribe", params).Result() == nil {
		return
	}
	mark := t.Mark()
	change()
	t.Fence()
	t.Fence() // other streams may lag behind
	for _, e := range t.Since(mark) {
		if updateOf(e, changed) {
			t.Violation(ids.ResourcesUpdatedOnlySubscribed,
				"an update of "+wire.Quote(changed, 60)+
					" came although the client was subscribed to another resource alone", e)
			break
		}
	}
	t.About(ids.ResourcesUnsubscribeAccepted)
	t.Call("resources/unsubscribe", params)
}

// updatedAgain makes a further call that changes a resource under subscription, which
// the server has to announce like the first change. It does nothing if the resource
// differs at each reading, or if the call does not change it. The resource is read only if nothing is announced.
func updatedAgain(t *check.T, call check.Call, uri, when string) {
	if told, _ := announces(t, call, "notifications/resources/updated"); told {
		return
	}
	before := contents(t, uri)
	if before == nil {
		return
	}
	mark := t.Mark()
	if x := t.Attempt(call.Params()); x == nil || x.Result() == nil {
		return
	}
	after := contents(t, uri)
	if after == nil || reflect.DeepEqual(before, after) {
		return
	}
	e, err := t.Session.AwaitNotification(t.Context, mark, "notifications/resources/updated")
	t.Show(e)
	if timedOut(err) {
		needsListening(t)
		if !reflect.DeepEqual(after, contents(t, uri)) {
			return
		}
		t.Fail("the resource %s changed again%s while the client was subscribed to it, "+
			"but notifications/resources/updated did not come",
			wire.Quote(uri, 60), when)
	}
	t.Must(err)
}

// updatedBeside is updatedAgain once the subscription to another resource has
// ended, and once there is a new one to that. It returns the subscriptions that are left.
func updatedBeside(t *check.T, call check.Call, uri string, subscribed []string) []string {
	t.Clear()
	another := func(other string) bool { return other != uri }
	i := slices.IndexFunc(subscribed, another)
	if i < 0 {
		further := resourceURIs(t, 2)
		j := slices.IndexFunc(further, another)
		if j < 0 || t.Call("resources/subscribe", map[string]any{"uri": further[j]}).Result() == nil {
			return subscribed
		}
		i, subscribed = len(subscribed), append(subscribed, further[j])
	}
	params := map[string]any{"uri": subscribed[i]}
	t.About(ids.ResourcesUnsubscribeAccepted)
	t.Call("resources/unsubscribe", params)
	t.About(ids.ResourcesUpdatedSent)
	updatedAgain(t, call, uri, " after the subscription to another one had ended")
	// The resource may be the last one of the list, and so the one that was subscribed to last.
	t.Clear()
	if t.Call("resources/subscribe", params).Result() != nil {
		updatedAgain(t, call, uri, " after a later subscription to another one")
		t.About(ids.ResourcesUnsubscribeAccepted)
		t.Call("resources/unsubscribe", params)
		t.About(ids.ResourcesUpdatedSent)
	}
	return slices.Delete(subscribed, i, i+1)
}

// subscribedTwice subscribes once more to a resource that is subscribed to. A server may
// refuse that; otherwise the updates go on.
func subscribedTwice(t *check.T, call check.Call, uri string) {
	t.Clear()
	if t.Call("resources/subscribe", map[string]any{"uri": uri}).Result() == nil {
		return
	}
	mark := t.Mark()
	updatedAgain(t, call, uri, " after it had subscribed twice")
	t.Fence()
	updates := slices.DeleteFunc(t.Since(mark), func(e *wire.Event) bool { return !updateOf(e, uri) })
	if len(updates) > 1 {
		t.Note("a change of a resource that was subscribed to twice is announced %d times", len(updates))
	}
}

// updatedElsewhere changes a resource under subscription while another client is subscribed to it as well.
func updatedElsewhere(t *check.T, call check.Call, uri string) {
	if t.Target.Transport == transport.NameStdio {
		return // each would be a process
	}
	params := map[string]any{"uri": uri}
	other := t.Connect(check.Capable())
	if _, err := other.Initialize(t.Context); err != nil ||
		t.CallOn(other, "resources/subscribe", params).Result() == nil {
		return
	}
	t.Clear()
	contents := func() any { return t.CallOn(other, "resources/read", params).Result()["contents"] }
	mark := other.Log().Len()
	updatedAgain(t, call, uri, ", with another client,")
	if slices.ContainsFunc(other.Log().Events()[mark:], func(e *wire.Event) bool { return updates(e, uri) }) {
		return
	}
	before, mark := contents(), other.Log().Len()
	updatedAgain(t, call, uri, ", with another client,")
	if after := contents(); before != nil && after != nil && !reflect.DeepEqual(before, after) {
		e, err := other.AwaitNotification(t.Context, mark, "notifications/resources/updated")
		t.Show(e)
		switch {
		case !timedOut(err) || !listensIn(other):
		case !reflect.DeepEqual(after, contents()):
			t.Disturbed("the resource %s changes by itself as well", wire.Quote(uri, 60))
		default:
			t.Fail("a call of one client changed the resource %s; another client was subscribed to it too and "+
				"received no notifications/resources/updated",
				wire.Quote(uri, 60))
		}
	}
}

// selfChanging subscribes to resources that no known tool changes, in case one changes
// by itself, and soon enough to show the end of the subscription.
func selfChanging(t *check.T) {
	const unknown = "no known tool changes a resource: name one for the tool role resource-update in the configuration"
	mark := t.Mark()
	update := func(e *wire.Event) bool { return tells(e, "notifications/resources/updated") }
	var subscribed []string
	for _, uri := range resourceURIs(t, maxRead) {
		if t.Call("resources/subscribe", map[string]any{"uri": uri}).Result() != nil {
			subscribed = append(subscribed, uri)
		}
	}
	limit, stop := context.WithTimeout(t.Context, soonAgain)
	defer stop()
	soon, cancel := context.WithTimeout(limit, t.Soon(check.Later))
	defer cancel()
	first, err := t.Session.Log().Await(soon, mark, update)
	if err != nil {
		t.Inconclusive(unknown)
	}
	t.Show(first)
	second, err := t.Session.Log().Await(limit, first.Seq+1, func(e *wire.Event) bool {
		return update(e) && reflect.DeepEqual(at(e.Msg.Params, "uri"), at(first.Msg.Params, "uri"))
	})
	for _, uri := range subscribed {
		t.Call("resources/unsubscribe", map[string]any{"uri": uri})
	}
	t.Fence()
	t.Exercised(ids.ResourcesUpdatedSent)
	if err != nil {
		t.Inconclusive("a resource changed by itself, but not again within a second")
	}
	// By now another notification would be due. The rule judges what comes.
	t.Show(second)
	after, stop := context.WithTimeout(t.Context, 2*(second.At-first.At)+judge.Crossing)
	defer stop()
	if e, err := t.Session.Log().Await(after, t.Mark(), update); err == nil {
		t.Show(e)
	}
	t.Fence()
}

// soonAgain is within which time a resource has to change twice by itself to show when
// notifications are due.
const soonAgain = time.Second

// listed fails unless a list was answered. Another requirement judges the treatment of cursors
// (server/utilities/pagination).
func listed(t *check.T, method string) {
	list := t.Target.List(method)
	if list.Lost {
		list = check.ReadList(t.Context, t.Session, method)
	}
	t.Must(list.Err)
	for _, page := range list.Pages {
		if page != refusedPage(list) {
			t.Expect(page).To(HaveResult())
		}
	}
}

// stillListed reads a list anew and reports whether it has an item with a member
// of the given value: lists may change at any time, and what is gone may be
// refused (server/resources#list-changed-notification). A list that changes
// while it is read may end with a cursor that has expired: it is read again.
func stillListed(t *check.T, method, member, value string) bool {
	const most = 3
	for range most {
		list := check.ReadList(t.Context, t.Session, method)
		if slices.ContainsFunc(list.Items, func(item map[string]any) bool { return item[member] == value }) {
			return true
		}
		if list.Err == nil && list.Pages[len(list.Pages)-1].Result() != nil {
			return false
		}
	}
	return false
}

// refusesAllResources reports whether a request about a resource was refused for no reason of its own: one about a
// listed resource is refused in the same words.
func refusesAllResources(t *check.T, x *client.Exchange) bool {
	uris, how := resourceURIs(t, 1), refusalOf(x)
	if len(uris) == 0 || how == "" || refusedWith(x, -32602) {
		return false
	}
	return refusalOf(t.Call(x.Method(), map[string]any{"uri": uris[0]},
		client.Deliberately(ids.ResourcesUnsubscribeAfterSubscribe))) == how
}

// resourceURIs returns the URIs of listed resources, up to a bound.
func resourceURIs(t *check.T, most int) []string {
	var uris []string
	for _, r := range t.Target.List("resources/list").Items {
		if uri, ok := r["uri"].(string); ok && len(uris) < most && schema.CheckFormat("uri", uri) == "" {
			uris = append(uris, uri)
		}
	}
	return uris
}

// templates returns the well-formed URI templates, up to a bound.
func templates(t *check.T) []string {
	var all []string
	for _, item := range t.Target.List("resources/templates/list").Items {
		if s, ok := item["uriTemplate"].(string); ok && len(all) < maxTemplates &&
			schema.CheckFormat("uri-template", s) == "" {
			all = append(all, s)
		}
	}
	return all
}

// noResources returns the URIs of the family that no resource has, as far as the list tells.
func noResources(t *check.T) []family.Member {
	all := resourceURIs(t, 1<<16)
	var members []family.Member
	for _, m := range t.Draw("uris-unknown") {
		if strings.Contains(m.Str(), "{known}") {
			if len(all) == 0 {
				continue
			}
			m = m.With(map[string]string{"known": all[0]})
		}
		if len(all) > 0 {
			m = m.With(map[string]string{"encoded": encodedLast(all[0]), "ported": ported(all[0])})
		}
		if !slices.Contains(all, m.Str()) && schema.CheckFormat("uri", m.Str()) == "" {
			members = append(members, m)
		}
	}
	return members
}

// encodedLast returns a URI with its last letter or digit percent-encoded. It identifies the same resource (RFC 3986,
// section 6.2.2.2). The result is "" if its path has neither.
func encodedLast(uri string) string {
	at := strings.LastIndexFunc(uri, func(c rune) bool {
		return c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c))
	})
	if path := strings.LastIndex(uri, "/"); at <= path || strings.ContainsAny(uri, "%?#") {
		return ""
	}
	return uri[:at] + fmt.Sprintf("%%%02X", uri[at]) + uri[at+1:]
}

// ported returns a URI of the web with the port that it has in any case (RFC 3986, section 6.2.3); "" if
// it is of another scheme or names one.
func ported(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.Port() != "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	u.Host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.String()
}

// notFound reads a URI that no resource has. It judges nothing if the server resolves the URI to a resource.
func notFound(t *check.T, m family.Member) {
	x := t.Call("resources/read", map[string]any{"uri": m.Str()})
	if x.Error() == nil {
		return
	}
	codes := []int64{-32002}
	if strings.Contains(m.Str(), "%") || len(m.Str()) > longURI {
		codes = append(codes, -32602) // a server may limit what it decodes (docs/positions.md, no-uri-code)
	}
	t.Check(ids.ResourcesErrorNotFoundCode, x).To(HaveErrorCode(codes...), "for the resource %s", m)
}

// longURI is what every recipient should take (RFC 9110, section 4.1, says 8000 octets).
const longURI = 2000

// besideListed returns, for each of a few schemes of the list, the URI of a resource that
// most likely does not exist, at the place of one that does.
func besideListed(t *check.T) []string {
	const most = 3
	var beside []string
	seen := make(map[string]bool)
	for _, uri := range resourceURIs(t, maxRead) {
		scheme, rest, found := strings.Cut(uri, "://")
		if i := strings.LastIndex(rest, "/"); found && !seen[scheme] && len(beside) < most {
			seen[scheme] = true
			beside = append(beside, scheme+"://"+rest[:i+1]+"mcpconform-no-such-name")
		}
	}
	return slices.DeleteFunc(beside, func(uri string) bool { return schema.CheckFormat("uri", uri) != "" })
}

// anythingMatches reports whether a template begins with a variable, so that
// any URI may be one of its resources.
func anythingMatches(t *check.T) bool {
	return slices.ContainsFunc(templates(t), func(s string) bool { return strings.HasPrefix(s, "{") })
}

// hasContents reports whether a resource was found.
func hasContents(x *client.Exchange) bool {
	contents, _ := x.Result()["contents"].([]any)
	return len(contents) > 0
}

// essence returns a media type without its parameters.
func essence(mimeType string) string {
	essence, _, _ := strings.Cut(mimeType, ";")
	return strings.ToLower(strings.TrimSpace(essence))
}

// refusedAlike reports whether something known was refused in the same words as
// something unknown.
func refusedAlike(x, unknown *client.Exchange, unknownName, name string) bool {
	return x.Error() != nil && unknown.Error() != nil && x.Error().Code == unknown.Error().Code &&
		x.Error().Message != "" &&
		strings.Contains(unknown.Error().Message, unknownName) &&
		x.Error().Message == strings.ReplaceAll(unknown.Error().Message, unknownName, name)
}

// upwards leads to a file that every Unix has.
var upwards = []string{
	"../../../../../../../../etc/passwd",
	"%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
}

// climbing returns URIs that leave the offered directories by dot segments. It skips templates that take whole paths:
// they may offer any file.
func climbing(t *check.T) []string {
	var uris []string
	for _, base := range slices.Concat(resourceURIs(t, 2), templates(t)[:min(len(templates(t)), 2)]) {
		base, _, _ = strings.Cut(base, "{")
		i := strings.LastIndex(base, "/")
		if !strings.Contains(base, "://") || i < strings.Index(base, "://")+3 || takesPaths(t, base) {
			continue
		}
		for _, target := range upwards {
			uris = append(uris, base[:i+1]+target)
		}
	}
	return uris
}

// isClimbing reports whether a URI is one of those that climbing returns.
func isClimbing(uri string) bool { return beside(uri) != uri }

// beside returns a URI of no resource at the place from which a climbing one starts. A
// server that makes up contents for it takes the text there for a mere name, in which
// dots lead nowhere.
func beside(uri string) string {
	for _, target := range upwards {
		if base, ok := strings.CutSuffix(uri, "/"+target); ok {
			return base + "/mcpconform-no-such-name"
		}
	}
	return uri
}

// takenForPatterns reads URIs of no resource that differ from those of one in a dot or an
// underscore, which stand for any character in a regular expression and in a query of SQL.
// The control differs from it in another place.
func takenForPatterns(t *check.T, known []string) {
	const most = 6
	read := func(uri string) *client.Exchange {
		return t.Call("resources/read", map[string]any{"uri": uri}, client.Deliberately("*"))
	}
	tried := 0
	try := func(uri, part string) {
		start := strings.Index(uri, part)
		scheme := strings.Index(uri, "://") + len("://")
		special := start + strings.IndexAny(part, "._")
		letter := strings.LastIndexFunc(uri[:start+len(part)], func(c rune) bool { return 'a' <= c && c <= 'w' })
		if scheme < len("://") || special < max(start, scheme) || letter < max(start, scheme) || tried == most ||
			followable(uri) && !strings.HasPrefix(uri, "file:") {
			return
		}
		other, control := uri[:special]+"x"+uri[special+1:], uri[:letter]+"x"+uri[letter+1:]
		if mayHave(t, known, other) || mayHave(t, known, control) {
			return
		}
		tried++
		t.Clear()
		right := read(uri)
		wrong := read(other)
		if hasContents(right) && hasContents(wrong) && sameContents(right, wrong) && !hasContents(read(control)) {
			t.Violation(ids.ResourcesSecurityValidateURIs,
				"the contents of "+wire.Quote(uri, 80)+" came for "+wire.Quote(other, 80)+
					", as if the one were a pattern", slices.Concat(right.Events(), wrong.Events())...)
		}
	}
	for _, uri := range known {
		try(uri, uri)
	}
	for _, template := range templates(t) {
		var literals []string
		eachExpression(template, func(literal string) { literals = append(literals, literal) }, func(byte, []string) {})
		i := slices.IndexFunc(literals, func(literal string) bool { return strings.ContainsAny(literal, "._") })
		if i < 0 {
			continue
		}
		if uris, _ := expansions(t, template); len(uris) > 0 && strings.Contains(uris[0], literals[i]) &&
			schema.CheckFormat("uri", uris[0]) == "" {
			try(uris[0], literals[i])
		}
	}
}

// mayHave reports whether a URI belongs to a listed resource or may come from a template.
func mayHave(t *check.T, known []string, uri string) bool {
	return slices.Contains(known, uri) || slices.ContainsFunc(templates(t),
		func(template string) bool { return mayGive(template, uri) })
}

// mayGive reports whether a template may give a URI, if its expressions can be anything. A
// regular expression of a template of megabytes could not be compiled.
func mayGive(template, uri string) bool {
	literals := []string{""} // before, between and after the expressions
	eachExpression(template, func(literal string) { literals[len(literals)-1] += literal },
		func(byte, []string) { literals = append(literals, "") })
	if len(literals) == 1 {
		return uri == literals[0]
	}
	last := literals[len(literals)-1]
	rest, begins := strings.CutPrefix(uri, literals[0])
	rest, ends := strings.CutSuffix(rest, last)
	if !begins || !ends {
		return false
	}
	for _, literal := range literals[1 : len(literals)-1] {
		_, after, found := strings.Cut(rest, literal)
		if !found {
			return false
		}
		rest = after
	}
	return true
}

// sameContents reports whether two reads gave the same texts and blobs.
func sameContents(a, b *client.Exchange) bool {
	data := func(x *client.Exchange) (all []any) {
		contents, _ := x.Result()["contents"].([]any)
		for _, item := range contents {
			all = append(all, at(item, "text"), at(item, "blob"))
		}
		return all
	}
	return reflect.DeepEqual(data(a), data(b))
}

// leaks reports whether contents are those of the file that a climbing URI leads to.
func leaks(x *client.Exchange) bool {
	contents, _ := x.Result()["contents"].([]any)
	return slices.ContainsFunc(contents, func(item any) bool {
		text, _ := at(item, "text").(string)
		return strings.Contains(text, "root:")
	})
}

// takesPaths reports whether a template of the same scheme takes a value with
// slashes, as {+path} and {/path*} do.
func takesPaths(t *check.T, uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	return slices.ContainsFunc(templates(t), func(s string) bool {
		return strings.HasPrefix(s, scheme+":") &&
			(strings.Contains(s, "{+") || strings.Contains(s, "{/") || strings.Contains(s, "{#") ||
				strings.Contains(s, "*}"))
	})
}

// expansions fills in a template: with what the server suggests for its variables, and else with a plain value. It
// reports whether all values were suggested. It leaves out the optional variables of a query: a variable may be
// undefined (RFC 6570, section 2.3).
func expansions(t *check.T, template string) (uris []string, suggested bool) {
	names := filledVariables(template)
	suggested = len(names) > 0
	sets := []map[string]string{{}}
	for i, name := range names {
		values := suggestions(t, map[string]any{"type": "ref/resource", "uri": template}, name)
		if len(values) == 0 {
			values, suggested = []string{"1"}, false
		}
		if i == 0 {
			// Only the first variable takes several values.
			sets = sets[:0]
			for _, v := range values[:min(len(values), maxExpansions)] {
				sets = append(sets, map[string]string{name: v})
			}
			continue
		}
		for _, set := range sets {
			set[name] = values[0]
		}
	}
	for _, set := range sets {
		uris = append(uris, expand(template, set))
	}
	return uris, suggested
}

// filledIn returns the URIs of resources of the templates, and whether a template may
// have others that are of more use: only values that the server itself suggests are
// sure to name something.
func filledIn(t *check.T) (uris []string, others bool) {
	usable := templates(t)
	list := t.Target.List("resources/templates/list")
	others = len(usable) < len(list.Items) || list.Err != nil
	for _, template := range usable {
		filled, suggested := expansions(t, template)
		filled = slices.DeleteFunc(filled, func(uri string) bool {
			return schema.CheckFormat("uri", uri) != "" ||
				!hasContents(t.Call("resources/read", map[string]any{"uri": uri}))
		})
		uris = append(uris, filled...)
		others = others || !suggested || len(filled) == 0
	}
	return uris, others
}

// constructs reports whether some value makes a template a URI. Only the server knows
// what a variable stands for, such as a scheme, a host or a whole URI.
func constructs(template string) bool {
	for _, value := range []string{"1", "a", "a:b", "[::1]", "https://example.com/a"} {
		values := make(map[string]string)
		for _, name := range templateVariables(template) {
			values[name] = value
		}
		if schema.CheckFormat("uri", expand(template, values)) == "" {
			return true
		}
	}
	return false
}

// operators are the operators of RFC 6570, appendix A, with the text before the first value, the separator of the
// others, named or plain values, the text after the name of an empty value, and the treatment of reserved characters.
var operators = map[byte]struct {
	first, separator string
	named            bool
	ifEmpty          string
	reserved         bool
}{
	0:   {"", ",", false, "", false},
	'+': {"", ",", false, "", true},
	'#': {"#", ",", false, "", true},
	'.': {".", ".", false, "", false},
	'/': {"/", "/", false, "", false},
	';': {";", ";", true, "", false},
	'?': {"?", "&", true, "=", false},
	'&': {"&", "&", true, "=", false},
}

// expand fills a well-formed template with values that are plain strings.
func expand(template string, values map[string]string) string {
	var b strings.Builder
	eachExpression(template, func(literal string) { b.WriteString(literal) }, func(operator byte, names []string) {
		o := operators[operator]
		before := o.first
		for _, name := range names {
			name, cut := prefixOf(name)
			value, ok := values[name]
			if !ok {
				continue
			}
			if runes := []rune(value); cut >= 0 && cut < len(runes) {
				value = string(runes[:cut])
			}
			b.WriteString(before)
			before = o.separator
			if o.named {
				b.WriteString(name)
				if value == "" {
					b.WriteString(o.ifEmpty)
					continue
				}
				b.WriteByte('=')
			}
			b.WriteString(escape(value, o.reserved))
		}
	})
	return b.String()
}

// templateVariables returns the names of the variables in a template, each once.
func templateVariables(template string) []string {
	var all []string
	eachExpression(template, func(string) {}, func(_ byte, names []string) {
		for _, name := range names {
			if name, _ := prefixOf(name); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	})
	return all
}

// filledVariables returns the variables in a template but for those of a query, unless it
// has no others.
func filledVariables(template string) []string {
	var all []string
	eachExpression(template, func(string) {}, func(operator byte, names []string) {
		if operator != '?' && operator != '&' {
			for _, name := range names {
				if name, _ := prefixOf(name); !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	})
	if len(all) == 0 {
		return templateVariables(template)
	}
	return all
}

// eachExpression takes a well-formed template apart.
func eachExpression(template string, literal func(string), expression func(operator byte, names []string)) {
	for template != "" {
		before, rest, found := strings.Cut(template, "{")
		literal(before)
		if !found {
			return
		}
		inner, after, _ := strings.Cut(rest, "}")
		var operator byte
		if inner != "" && strings.IndexByte("+#./;?&", inner[0]) >= 0 {
			operator, inner = inner[0], inner[1:]
		}
		expression(operator, strings.Split(inner, ","))
		template = after
	}
}

// prefixOf takes the modifier off a variable: the length of a prefix, or -1.
func prefixOf(variable string) (name string, length int) {
	name, digits, found := strings.Cut(strings.TrimSuffix(variable, "*"), ":")
	if !found {
		return name, -1
	}
	for _, d := range digits {
		length = length*10 + int(d-'0')
	}
	return name, length
}

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// escape percent-encodes what may not stand in an expansion.
func escape(value string, reserved bool) string {
	keep := unreserved
	if reserved {
		keep += ":/?#[]@!$&'()*+,;="
	}
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// ownSchemes are those whose URIs a client can follow without the server: on
// the web, on the same disk, or because the URI holds the data itself.
var ownSchemes = map[string]bool{"https": true, "http": true, "ftp": true, "file": true, "data": true}

// followable reports whether a client can get what a URI names by itself.
func followable(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	return ownSchemes[strings.ToLower(scheme)]
}
