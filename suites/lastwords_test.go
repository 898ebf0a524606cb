package suites_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestLastWords: why a run is incomplete repeats what the server said when it died,
// without secrets, and a note has the end of its stderr if that says something else.
func TestLastWords(t *testing.T) {
	for _, c := range []struct{ name, stderr, want, note string }{
		{
			"known", "Error: Cannot find module '/srv/hush-hush-hush'\n    at Module._resolveFilename\n\nNode.js v22.1.0\n",
			`; its last words: "Error: Cannot find module '/srv/[redacted]'"`, `"Node.js v22.1.0"`,
		},
		{"unknown", "starting\nAPI_KEY is not set\n", `; its last words: "starting", "API_KEY is not set"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dies := transport.Func{Name: "dies", Run: func(_ context.Context, _ io.Reader, _, stderr io.Writer) error {
				_, _ = io.WriteString(stderr, c.stderr)
				return errors.New("it died")
			}}
			redactor := transport.NewRedactor(nil, "")
			redactor.Add("hush-hush-hush")
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: dies}}, suites.Options{Redactor: redactor})
			if err != nil {
				t.Fatal(err)
			}
			why := strings.ReplaceAll(run.Reason, transport.Redacted, "[redacted]")
			if run.Verdict != result.Incomplete || !strings.HasSuffix(why, c.want) {
				t.Errorf("%s: %s; want …%s", run.Verdict, why, c.want)
			}
			said := slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, "stderr: ") })
			if said != (c.note != "") || !strings.Contains(strings.Join(run.Notes, "\n"), c.note) {
				t.Errorf("the notes are %q", run.Notes)
			}
		})
	}
}
