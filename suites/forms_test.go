package suites_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/oddclient"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// derivedForms are the forms that are derived from plain faults.
var derivedForms = []mockserver.Form{mockserver.BySession, mockserver.AtOnce, mockserver.InSequence}

// formsOfServers returns the faults of servers in each form that can be derived.
func formsOfServers() (derived []killmatrix.Derived) {
	for _, plain := range mockserver.Catalogue() {
		for _, form := range derivedForms {
			f, ok := oddserver.In(plain, form)
			over := transport.NameHTTP
			if !f.Shows(over) {
				over = f.Transports[0]
			}
			// Over stdio each session is a process.
			if !ok || over == transport.NameStdio && form == mockserver.BySession {
				continue
			}
			try := func(ctx context.Context, selected ...string) (*result.Run, error) {
				o := serverOptions()
				f.Apply(&o)
				return conduct(ctx, killmatrix.Seed(), over, o, selected...)
			}
			derived = append(derived, killmatrix.Derived{
				ID: plain.ID, Form: string(form), Requirement: f.Requirement, Summary: f.Summary,
				Run:      func(ctx context.Context, _ string) (*result.Run, error) { return try(ctx) },
				Selected: func(ctx context.Context, requirement string) (*result.Run, error) { return try(ctx, requirement) },
			})
		}
	}
	return derived
}

// TestForms wants each fault of servers to be found as well where the server misbehaves in all sessions but
// the first, only beside other requests, or only from the second time on. It tries a part of them.
func TestForms(t *testing.T) {
	brief.WholeRuns(t)
	exceptions, derived := killmatrix.ReadForms(t, "../fixtures/forms.yaml").Servers, formsOfServers()
	killmatrix.CheckExceptions(t, exceptions, derived)
	killmatrix.TryForms(t, exceptions, derived, false, func(t *testing.T, test func(*testing.T)) { virtual.Test(t, test) })
}

// TestFormsPage wants the page about forms to be up to date.
func TestFormsPage(t *testing.T) {
	if brief.Race {
		t.Skip("there is nothing to race for")
	}
	const file = "../docs/kill-matrix-forms.md"
	forms := killmatrix.ReadForms(t, "../fixtures/forms.yaml")
	var clients []killmatrix.Derived
	for _, plain := range mockclient.Catalogue() {
		for _, form := range derivedForms {
			if _, ok := oddclient.In(plain, form); ok {
				clients = append(clients, killmatrix.Derived{ID: plain.ID, Form: string(form)})
			}
		}
	}
	var page bytes.Buffer
	page.WriteString(formsHead)
	page.WriteString("\n## Servers\n\n")
	killmatrix.WriteForms(&page, forms.Reasons, forms.Servers, formsOfServers())
	page.WriteString("\n## Clients\n\n")
	killmatrix.WriteForms(&page, forms.Reasons, forms.Clients, clients)
	if killmatrix.Update() {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), page.String()); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", file, diff)
	}
}

const formsHead = `# Faults by form

A check that tries everything once finds what is wrong at once. Bugs also hide in the second session, beside another request, and in the
second time. So most plain faults of the kill matrices are tried in further forms, which are derived from them:

| form | a server misbehaves | a client misbehaves |
|---|---|---|
| session | in all sessions but its first | – |
| concurrent | only while other requests of the session are in progress | only in what it sends while another request of the server is open |
| sequence | only from the second message of a method on | only from the second message of a kind on |

Faults of what is offered, of the transport as a whole and of what is done once in any case have no such forms. Each form has to be found under the requirement that the fault breaks: with that requirement alone selected, or else in a whole run; the exceptions are in ` + "`fixtures/forms.yaml`" + `, each with its reason, and a form that is neither found nor
excused fails the build. The tests try a part of them, another one with each ` + "`-count`" + `; ` + "`go test ./suites ./suites/client -run TestForms -form session`" + `
tries all of one form, ` + "`-fault PREFIX`" + ` all forms of some faults, and both also say which exceptions are needed no longer. This page is written by
` + "`go test ./suites -run TestFormsPage -update`" + `.
`

// A fault in another form leaves the first session as it is, and shows in the next one.
func TestFormsOfMoments(t *testing.T) {
	if _, ok := oddserver.In(
		mockserver.Fault{Apply: func(o *server.Options) { o.Without = []string{"tools"} }}, mockserver.BySession); ok {
		t.Error("what a server offers is the same at every time")
	}
}
