// Package server holds the checks of servers, one file a page of the
// specification.
package server

import (
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/fixtures"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/suites/check"
)

// Checks returns all checks of servers in the order of the pages.
func Checks() []*check.Check {
	return slices.Concat(baseChecks, lifecycleChecks, metaChecks, stdioChecks, httpChecks, httpStreamChecks, httpSessionChecks, sseChecks, authChecks, pingChecks, progressChecks, cancellationChecks, samplingChecks, rootChecks, elicitationChecks, toolChecks, paginationChecks,
		resourceChecks, promptChecks, completionChecks, loggingChecks, builtInScripts())
}

// builtInScripts returns the checks that play the scripts of fixtures/scripts.
// A test sees to it that these can be read.
var builtInScripts = sync.OnceValue(func() []*check.Check {
	scripts, _ := script.ReadDir(fixtures.Scripts(), "fixtures/scripts")
	var checks []*check.Check
	for _, s := range scripts {
		checks = append(checks, Scripted(s, false, s.Requirements...))
	}
	return checks
})
