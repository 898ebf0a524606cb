package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Expand replaces ${env:NAME}, ${NAME} and ${NAME:-default} in a text with what
// lookup finds. A variable that is not set and has no default is an error that
// names it.
func Expand(text string, lookup func(string) (string, bool)) (string, error) {
	return expander{lookup: lookup}.expand(text)
}

type expander struct {
	lookup func(string) (string, bool)
	file   string // "" where there is no workspace
}

// OpenCode writes {env:NAME}, the others ${env:NAME}.
var reference = regexp.MustCompile(`\$\{[^{}]*\}|\{env:[^{}]*\}`)

func (e expander) expand(text string) (string, error) {
	var failed error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		value, err := e.value(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(found, "$"), "{"), "}"))
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return expanded, failed
}

func (e expander) value(inner string) (string, error) {
	switch {
	case inner == "userHome":
		return os.UserHomeDir()
	case inner == "pathSeparator", inner == "/":
		return string(filepath.Separator), nil
	case e.file != "" && inner == "workspaceFolder":
		return e.workspace(), nil
	case e.file != "" && inner == "workspaceFolderBasename":
		return filepath.Base(e.workspace()), nil
	}
	name, fallback, optional := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if strings.Contains(name, ":") {
		return "", fmt.Errorf("only the client can fill in ${%s}", inner)
	}
	if v, ok := e.lookup(name); ok && (v != "" || !optional) {
		return v, nil
	}
	if optional {
		return fallback, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

// workspace returns the folder that the file is about: its own, or the one
// above a client's folder of settings.
func (e expander) workspace() string {
	dir, err := filepath.Abs(filepath.Dir(e.file))
	if err != nil {
		return filepath.Dir(e.file)
	}
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" {
		return filepath.Dir(dir)
	}
	return dir
}

// plain blanks out what the JSON of such files has beyond JSON: a byte order
// mark, comments, and commas before a closing bracket. Offsets and lines stay.
func plain(raw []byte) []byte {
	out := append([]byte(nil), raw...)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	if strings.HasPrefix(string(out), "\ufeff") {
		blank(0, len("\ufeff"))
	}
	comma := -1
	for i := 0; i < len(out); i++ {
		rest := string(out[i:min(i+2, len(out))])
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case rest == "//":
			end := i
			for end < len(out) && out[end] != '\n' {
				end++
			}
			blank(i, end)
			i = end - 1
		case rest == "/*":
			end := len(out)
			if n := strings.Index(string(out[i+2:]), "*/"); n >= 0 {
				end = i + 2 + n + 2
			}
			blank(i, end)
			i = end - 1
		case out[i] == ',':
			comma = i
		case out[i] == '}', out[i] == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case !strings.ContainsRune(" \t\r\n", rune(out[i])):
			comma = -1
		}
	}
	return out
}

// place adds line and column to an error of the JSON decoder.
func place(raw []byte, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
	}
	if offset < 0 || offset > int64(len(raw)) {
		return err
	}
	before := string(raw[:offset])
	line := strings.Count(before, "\n") + 1
	column := max(1, len(before)-strings.LastIndex(before, "\n")-1)
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}
