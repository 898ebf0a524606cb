package reporters

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Results are read from files that anybody may have written: whatever can be read can be
// written by every reporter, and as results again.
func FuzzResults(f *testing.F) {
	var whole bytes.Buffer
	if err := JSON(&whole, sampleRun()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"requirements":[{"id":"","verdict":"x","findings":[{}],"disputed":{}}],"against":{},"shard":{"index":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := ReadJSON(bytes.NewReader(data))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		for name, write := range map[string]func(io.Writer, *result.Run) error{
			"JSON": JSON, "checklist": Checklist, "HTML": HTML,
			"JUnit":   func(w io.Writer, r *result.Run) error { return JUnit(w, r, JUnitOptions{}) },
			"SARIF":   func(w io.Writer, r *result.Run) error { return SARIF(w, r, SARIFOptions{}) },
			"console": func(w io.Writer, r *result.Run) error { return Console(w, r, ConsoleOptions{}) },
			"matrix":  func(w io.Writer, r *result.Run) error { return MatrixMarkdown(w, []*result.Run{r, r}) },
		} {
			var text bytes.Buffer
			if err := write(&text, run); err == nil && text.Len() == 0 {
				t.Errorf("%s is empty", name)
			} else if name == "JSON" && err == nil && !json.Valid(text.Bytes()) {
				t.Error("what was read is not written as JSON")
			}
		}
		if c, err := result.Compare(run, run); err == nil && c == nil {
			t.Error("a comparison is neither there nor refused")
		}
		if merged, err := suites.Merge([]*result.Run{run, run}); err == nil && merged == nil {
			t.Error("a merged run is neither there nor refused")
		}
		_, _ = NewBadge(run)
	})
}
