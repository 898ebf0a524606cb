package judge_test

import (
	"testing"
	"testing/synctest"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// resourceList is a listing with one resource.
func resourceList(members string) string {
	return exchange(1, "resources/list", `{}`, `{"resources":[{"name":"n",`+members+`}]}`)
}

func readBlob(id int, blob string) string {
	return exchange(id, "resources/read", `{"uri":"a:b"}`, `{"contents":[{"uri":"a:b","blob":"`+blob+`"}]}`)
}

func subscribe(id int, uri string) string {
	return exchange(id, "resources/subscribe", `{"uri":"`+uri+`"}`, `{}`)
}

func unsubscribe(id int, uri string) string {
	return exchange(id, "resources/unsubscribe", `{"uri":"`+uri+`"}`, `{}`)
}

func updated(uri string) string {
	return notice("notifications/resources/updated", `{"uri":"`+uri+`"}`)
}

func TestResources(t *testing.T) {
	templates := func(template string) string {
		return exchange(1, "resources/templates/list", `{}`, `{"resourceTemplates":[{"name":"n","uriTemplate":"`+template+`"}]}`)
	}
	two := func(first, second string) string {
		return exchange(1, "resources/list", `{}`, `{"resources":[{"name":"n","uri":"`+first+`"}],"nextCursor":"c"}`) +
			exchange(2, "resources/list", `{"cursor":"c"}`, `{"resources":[{"name":"n","uri":"`+second+`"}]}`)
	}
	sized := resourceList(`"uri":"a:b","size":2`)
	runFeatureCases(t, []featureCase{
		{id: "resources.uri.unique", party: wire.Server, good: two("a:b", "a:c"), bad: two("a:b", "a:b")},
		{id: "resources.uri.rfc3986", party: wire.Server, good: resourceList(`"uri":"a:b"`), bad: resourceList(`"uri":"a b"`)},
		{id: "resources.uri.rfc3986", party: wire.Server, good: subscribe(1, "a:b") + updated("a:b"), bad: updated("/b")},
		{id: "resources.uri-scheme.custom-rfc3986", party: wire.Server, good: resourceList(`"uri":"a+b.c-d:x"`), bad: resourceList(`"uri":"a_b://x"`)},
		{id: "resources.mime-type.syntax", party: wire.Server, good: resourceList(`"uri":"a:b","mimeType":"text/plain; charset=utf-8"`), bad: resourceList(`"uri":"a:b","mimeType":""`)},
		{id: "resources.template.rfc6570", party: wire.Server, good: templates("a:{b}/{+c*}{?d:3}"), bad: templates("a:{b")},
		{id: "resources.size.raw-bytes", party: wire.Server, good: sized + readBlob(2, "AAE="), bad: sized + readBlob(2, "AAEC") + readBlob(3, "AAEC")},
		{id: "resources.size.raw-bytes", party: wire.Server, good: sized + readBlob(2, "AAE="), bad: sized + readBlob(2, "AAEC") + readBlob(3, "AAECAw=="), silent: true},
		{id: "resources.updated.only-subscribed", party: wire.Server, good: subscribe(1, "a:b") + updated("a:b"), bad: updated("a:b")},
		{id: "resources.updated.only-subscribed", party: wire.Server, good: subscribe(1, "a:b") + updated("a:b/c"), bad: subscribe(1, "a:b") + updated("x:y")},
		{id: "resources.unsubscribe.after-subscribe", party: wire.Client, good: subscribe(1, "a:b") + unsubscribe(2, "a:b"), bad: subscribe(1, "a:c") + unsubscribe(2, "a:b")},
		{id: "resources.updated.sub-resource", party: wire.Client, silent: true,
			good: subscribe(1, "a:b/") + updated("a:b/c") + ping, bad: subscribe(1, "a:b") + updated("a:b") + ping},
		{id: "resources.list-changed.unsolicited", party: wire.Client, silent: true,
			good: notice("notifications/resources/list_changed", `{}`) + ping, bad: ping},
		{id: "resources.uri-scheme.custom-allowed", party: wire.Client, silent: true,
			good: resourceList(`"uri":"a:b"`) + readBlob(2, ""), bad: resourceList(`"uri":"a:c"`) + readBlob(2, "")},
		{id: "resources.uri-scheme.file-xdg-mime", party: wire.Client, silent: true,
			good: resourceList(`"uri":"file:///d","mimeType":"inode/directory"`) + ping, bad: resourceList(`"uri":"file:///d","mimeType":"text/plain"`) + ping},
		{id: "resources.read.several-contents", party: wire.Client, silent: true,
			good: exchange(1, "resources/read", `{"uri":"a:b"}`, `{"contents":[{"uri":"a:b","text":""},{"uri":"a:c","text":""}]}`) + ping, bad: readBlob(1, "") + ping},
	})
}

func TestUpdatesAfterUnsubscribe(t *testing.T) {
	const id = "resources.updated.ends-with-unsubscribe"
	for _, c := range []struct {
		name, lines string
		broken      bool
	}{
		{"right after the answer", subscribe(1, "a:b") + unsubscribe(2, "a:b") + updated("a:b"), false},
		{"after a round trip", subscribe(1, "a:b") + unsubscribe(2, "a:b") + passes + ping + updated("a:b"), true},
		{"of a change from before", subscribe(1, "a:b") + unsubscribe(2, "a:b") + ping + updated("a:b"), false},
		{"before the answer", subscribe(1, "a:b") + request(2, "resources/unsubscribe", `{"uri":"a:b"}`) + updated("a:b") + answer(2, "{}"), false},
		{"subscribed anew", subscribe(1, "a:b") + unsubscribe(2, "a:b") + subscribe(3, "a:b") + updated("a:b"), false},
		{"covered by another", subscribe(1, "a:b") + subscribe(2, "a:b/c") + unsubscribe(3, "a:b/c") + updated("a:b/c"), false},
		{"another resource", subscribe(1, "a:b") + unsubscribe(2, "a:b") + subscribe(3, "a:c") + updated("a:c"), false},
	} {
		if found := foundOfServer(t, id, c.lines); found != c.broken {
			t.Errorf("%s: broken is %v, want %v", c.name, found, c.broken)
		}
	}
}

// An update of a part may cross the unsubscribe from the whole.
func TestUpdatesOfParts(t *testing.T) {
	const id = "resources.updated.only-subscribed"
	for _, c := range []struct {
		name, lines string
		noted       bool
	}{
		{"while subscribed", subscribe(1, "a:b") + updated("a:b/c"), false},
		{"before the answer", subscribe(1, "a:b") + request(2, "resources/unsubscribe", `{"uri":"a:b"}`) + updated("a:b/c") + answer(2, "{}"), false},
		{"right after the answer", subscribe(1, "a:b") + unsubscribe(2, "a:b") + updated("a:b/c"), false},
		{"after a round trip", subscribe(1, "a:b") + unsubscribe(2, "a:b") + passes + ping + updated("a:b/c"), true},
		{"of a change from before", subscribe(1, "a:b") + unsubscribe(2, "a:b") + ping + updated("a:b/c"), false},
		{"below another that is subscribed to", subscribe(1, "a:b") + subscribe(2, "a:b/c") + unsubscribe(3, "a:b") + ping + updated("a:b/c/d"), false},
		{"of another resource", subscribe(1, "a:b") + updated("a:c"), true},
	} {
		if found := foundOfServer(t, id, c.lines); found != c.noted {
			t.Errorf("%s: noted is %v, want %v", c.name, found, c.noted)
		}
	}
}

// foundOfServer reports whether a server is found to break a requirement in a conversation.
func foundOfServer(t *testing.T, id, lines string) (found bool) {
	synctest.Test(t, func(t *testing.T) {
		seen := judge.Judge(schema.Default(), []*wire.Log{conversation(t, lines)}, judge.Options{})[judge.Key{Requirement: id, Party: wire.Server}]
		found = seen != nil && len(seen.Findings) > 0
	})
	return found
}
