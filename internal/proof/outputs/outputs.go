// Package outputs makes every document that can be made of a run, for tests of what none may hold.
package outputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/suites/result"
)

// All returns the documents of a run by name, and beside them the trace and the run as it is.
func All(run *result.Run, trace *wire.Trace) (map[string]string, error) {
	members := []reporters.Member{{Name: "target", Run: run}}
	all := make(map[string]string)
	for name, write := range map[string]func(io.Writer) error{
		"results.json": func(w io.Writer) error { return reporters.JSON(w, run) },
		"JUnit":        func(w io.Writer) error { return reporters.JUnit(w, run, reporters.JUnitOptions{}) },
		"checklist":    func(w io.Writer) error { return reporters.Checklist(w, run) },
		"HTML":         func(w io.Writer) error { return reporters.HTML(w, run) },
		"SARIF":        func(w io.Writer) error { return reporters.SARIF(w, run, reporters.SARIFOptions{}) },
		"console": func(w io.Writer) error {
			return reporters.Console(w, run, reporters.ConsoleOptions{Verbose: true})
		},
		"attestation":  func(w io.Writer) error { return reporters.Attestation(w, run, reporters.Attested{}) },
		"annotations":  func(w io.Writer) error { return reporters.GitHub(w, members) },
		"step summary": func(w io.Writer) error { return reporters.StepSummary(w, members, 1<<20) },
		"summary":      func(w io.Writer) error { return reporters.Summary(w, members, reporters.ConsoleOptions{}) },
		"badge": func(w io.Writer) error {
			badge, err := reporters.NewBadge(run)
			if err != nil {
				return err
			}
			return reporters.BadgeSVG(w, badge)
		},
		"trace": func(w io.Writer) error { _, err := trace.WriteTo(w); return err },
		"run":   func(w io.Writer) error { return json.NewEncoder(w).Encode(run) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = b.String()
	}
	return all, nil
}
