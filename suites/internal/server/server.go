package server

import (
	"slices"

	"github.com/mcpconform/mcpconform/suites/check"
)

// Checks returns all checks of servers in the order of the pages.
func Checks() []*check.Check {
	return slices.Concat(baseChecks, sequenceChecks, lifecycleChecks, metaChecks, stdioChecks, httpChecks,
		httpStreamChecks, httpSessionChecks, sseChecks, authChecks, pingChecks, progressChecks, cancellationChecks,
		samplingChecks, rootChecks, elicitationChecks, toolChecks, paginationChecks,
		resourceChecks, promptChecks, completionChecks, loggingChecks, stringChecks, exitChecks)
}
