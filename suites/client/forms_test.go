package client_test

import (
	"context"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/oddclient"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestForms wants each fault of clients to be found as well where the client misbehaves only beside another
// request of the server, or only from the second time on, or ends in order where it would die. It tries a part of them.
func TestForms(t *testing.T) {
	exceptions := killmatrix.ReadForms(t, "../../fixtures/forms.yaml").Clients
	var derived []killmatrix.Derived
	for _, plain := range mockclient.Catalogue() {
		for _, form := range []mockserver.Form{mockserver.AtOnce, mockserver.InSequence, mockserver.InOrder} {
			if f, ok := oddclient.In(plain, form); ok {
				derived = append(derived, killmatrix.Derived{
					ID: plain.ID, Form: string(form), Requirement: f.Requirement, Summary: f.Summary, Scenario: f.Scenario,
					Run: func(ctx context.Context, scenario string) (*result.Run, error) {
						f.Scenario = scenario
						return faultyRun(ctx, f)
					},
				})
			}
		}
	}
	killmatrix.CheckExceptions(t, exceptions, derived)
	killmatrix.TryForms(t, exceptions, derived, true, func(t *testing.T, test func(*testing.T)) { virtual.Test(t, test) })
}
