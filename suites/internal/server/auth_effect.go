package server

import (
	"net/http"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// A request that is refused for its token must have no effect: servers "MUST validate access tokens before processing
// the request" (basic/authorization#access-token-privilege-restriction). Each check compares a refused message with the
// same message and a valid token.

const validatesFirst = ids.AuthServerValidatesFirst

// refusedDelete sends a DELETE that is refused. The DELETE of another session, with the valid token, has to work.
func refusedDelete(t *check.T) {
	goesOn(t)
	if t.HTTP().SessionID() == "" {
		t.Skip("the server assigns no session ids")
	}
	remove := transport.Request{Method: http.MethodDelete, Deliberate: []string{"*"}}
	other, _ := t.Open(client.Options{}).Conn.(*transport.HTTPConn)
	if t.DoOn(other, remove).Status/100 != 2 {
		t.Skip("the server lets no client end a session")
	}
	for _, authorization := range useless(t) {
		t.Clear()
		remove.Header = authorization.header()
		if r := t.Do(remove); r.Status/100 != 4 {
			return // another check judges that
		}
		if !served(t, t.Do(plainRequest(t)), validatesFirst) {
			return // the session is gone
		}
	}
}

// goesOn makes sure that a session outlives requests that are refused for their token. A server may end one at any time
// (basic/transports#session-management).
func goesOn(t *check.T) {
	protected(t)
	control(t)
	t.Clear()
	for _, authorization := range useless(t) {
		r := plainRequest(t)
		r.Header, r.Deliberate = authorization.header(), []string{"*"}
		t.Assume(t.Do(r)).ToNot(BeAccepted(), "for a request %s", authorization.what)
	}
	t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "in a session in which requests were refused for their token")
}

// refusedCall sends a call that is refused, of a tool that changes a list. The list has to stay as it is, and change
// with the same call and a valid token.
func refusedCall(t *check.T) {
	goesOn(t)
	feature, call := listChanging(t)
	method := feature + "/list"
	read := func() *check.List {
		list := check.ReadList(t.Context, t.Session, method)
		for _, page := range list.Pages {
			t.Show(page.Events()...)
		}
		t.Must(list.Err)
		return list
	}
	for _, authorization := range useless(t) {
		t.Clear()
		before, again := read(), read()
		if !sameItems(before, again) {
			t.Inconclusive("%s changes by itself", method)
		}
		r := transport.Request{Header: authorization.header(), Deliberate: []string{"*"},
			Body: rpc(t.Session.NextID(), check.RPC{Method: "tools/call", Params: call.Params()})}
		answer := t.Do(r)
		t.Assume(answer).ToNot(BeAccepted(), "for a call %s", authorization.what)
		if after := read(); !sameItems(again, after) {
			t.Fail("a call of the tool %q %s was refused with HTTP status %d, and changed %s all the same", call.Tool,
				authorization.what, answer.Status, method)
		}
	}
	t.Clear()
	before := read()
	perform(t, call)
	if sameItems(before, read()) {
		t.Inconclusive("the tool %q does not change %s at once, with the valid token either", call.Tool, method)
	}
}

// listChanging returns a list, and the call of a tool that changes it. It ends the body if there is none.
func listChanging(t *check.T) (feature string, call check.Call) {
	for _, feature := range []string{"tools", "prompts", "resources"} {
		if call, ok := t.Target.ToolFor(feature + "-change"); ok && t.Target.List(feature+"/list").Served() {
			return feature, call
		}
	}
	t.Inconclusive("no tool is known to change a list: name one for the tool role %q in the configuration",
		"tools-change")
	return "", check.Call{}
}

// refusedCancellation sends a cancellation that is refused. The call has to be answered, as it is without one.
func refusedCancellation(t *check.T) {
	goesOn(t)
	call := toolFor(t, "slow")
	t.Assume(t.Call("tools/call", call.Params())).To(HaveResult(), "for the tool %q", call.Tool)
	t.Clear()
	p := t.Start("tools/call", call.Params())
	underWay(t, t.Session, p)
	for _, authorization := range useless(t) {
		t.Assume(t.Do(transport.Request{Header: authorization.header(), Deliberate: []string{"*"},
			Body: []byte(cancellation(p.Request.Msg.ID))})).ToNot(BeAccepted(), "for a notification %s",
			authorization.what)
	}
	t.Check(validatesFirst, t.Await(p)).To(HaveResult(),
		"for a call whose cancellation was refused because of its token")
}
