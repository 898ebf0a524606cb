package reporters

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/mcpconform/mcpconform/suites/result"
)

//go:embed results.schema.json
var resultsSchema []byte

// ResultsSchema returns the JSON Schema (draft 2020-12) of results.json.
func ResultsSchema() []byte {
	return slices.Clone(resultsSchema)
}

// MaxResults is the size in bytes above which ReadJSON refuses a file.
const MaxResults = 256 << 20

// ErrResultsTooLarge is returned by ReadJSON for a file above MaxResults.
var ErrResultsTooLarge = fmt.Errorf("results are larger than %d MiB", MaxResults>>20)

// FormatError is returned by ReadJSON for results of another format version.
type FormatError struct {
	Got int // 0 if the file names none
}

func (e *FormatError) Error() string {
	if e.Got == 0 {
		return `no results of mcpconform: there is no member "format"`
	}
	return fmt.Sprintf("results have format %d, this version reads format %d", e.Got, result.Format)
}

// JSON writes results.json, which docs/results.md describes: indented by two
// spaces, in UTF-8, with a final newline.
func JSON(w io.Writer, run *result.Run) error {
	if run == nil {
		return errNoRun
	}
	out := *run
	out.Format = result.Format
	out.Started, out.Seconds = written(out.Started), seconds(out.Seconds)
	if out.Requirements == nil {
		out.Requirements = []result.Requirement{}
	}
	// The capabilities are the target's own bytes. A report with one member in
	// quotes is worth more than none.
	if caps := out.Target.Capabilities; len(caps) > 0 {
		text := strings.ToValidUTF8(string(caps), "\uFFFD")
		if json.Valid([]byte(text)) {
			out.Target.Capabilities = json.RawMessage(text)
		} else {
			quoted, err := json.Marshal(text)
			if err != nil {
				return fmt.Errorf("write results: %w", err)
			}
			out.Target.Capabilities = quoted
		}
	}
	return WriteJSON(w, &out, "results")
}

// WriteJSON writes v so that the file can be looked at in a terminal: controls
// and formats stand as escapes, which they can only be in strings.
func WriteJSON(w io.Writer, v any, what string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	text := bufio.NewWriter(w)
	for _, r := range b.String() {
		switch {
		case r == '\n' || printable(r):
			text.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(text, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(text, `\u%04x\u%04x`, high, low)
		}
	}
	if err := text.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// ReadJSON reads what JSON wrote. Members that this version does not know are
// ignored. It returns ErrResultsTooLarge, a *FormatError, or an error that says
// what is wrong with the file.
func ReadJSON(r io.Reader) (*result.Run, error) {
	return readJSON(r, MaxResults)
}

func readJSON(r io.Reader, limit int64) (*result.Run, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read results: %w", ErrResultsTooLarge)
	}
	// A later format may have members of other types, so its number is read first.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("read results: %w", locate(data, err))
	}
	if head.Format != result.Format {
		return nil, fmt.Errorf("read results: %w", &FormatError{Got: head.Format})
	}
	run := new(result.Run)
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("read results: %w", locate(data, err))
	}
	if err := validate(run); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return run, nil
}

// locate adds the line to an error of the JSON decoder.
func locate(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at := min(max(int(syntax.Offset), 0), len(data))
		return fmt.Errorf("line %d: not valid JSON: %w", 1+strings.Count(string(data[:at]), "\n"), err)
	}
	return err
}

// maxShards bounds what a file may say: no run has so many checks.
const maxShards = 100_000

// validate rejects what would render as a misleading report.
func validate(run *result.Run) error {
	switch run.Verdict {
	case result.Conformant, result.NotConformant, result.Incomplete:
	default:
		return fmt.Errorf("unknown verdict %s of the run", quote(string(run.Verdict)))
	}
	switch run.Role {
	case "server", "client", "authorization-server":
	default:
		return fmt.Errorf("unknown role %s of the target", quote(run.Role))
	}
	if s := run.Shard; s != nil && (s.Index < 1 || s.Index > s.Of || s.Of > maxShards) {
		return fmt.Errorf("there is no shard %d of %d", s.Index, s.Of)
	}
	seen := make(map[string]bool, len(run.Requirements))
	for i := range run.Requirements {
		q := &run.Requirements[i]
		if q.ID == "" {
			return fmt.Errorf("requirement %d has no id", i)
		}
		if seen[q.ID] {
			return fmt.Errorf("requirement %s occurs twice", quote(q.ID))
		}
		seen[q.ID] = true
		switch q.Verdict {
		case result.Pass, result.Skip, result.Inconclusive, result.Warn, result.Fail, result.Error:
		default:
			return fmt.Errorf("requirement %s has the unknown verdict %s", quote(q.ID), quote(string(q.Verdict)))
		}
		if q.Exercised < 0 || q.Omitted < 0 {
			return fmt.Errorf("requirement %s has a negative count", quote(q.ID))
		}
	}
	return nil
}

func quote(s string) string {
	return `"` + line(s, limitName) + `"`
}
