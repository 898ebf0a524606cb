// Package yamlfile reads YAML files that people write, strictly, and says line
// and column of what is wrong with them.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxBytes = 1 << 20 // of a file
	// maxDepth bounds how deep lists and members may be nested: the time that
	// the YAML library takes grows with its square.
	maxDepth = 100
)

// Error is a fault of a file. Line and Column count from 1; they are 0 if the
// fault has no place.
type Error struct {
	Name         string // of the file
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Message)
}

// File is a parsed file with at most one document.
type File struct {
	Name string
	root ast.Node // nil for an empty document
}

// Read reads and parses the file at a path. The error wraps fs.ErrNotExist if
// there is none, and is an *Error if it is not YAML.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path)
}

// ReadFS is Read within a file system.
func ReadFS(fsys fs.FS, path string) (*File, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path)
}

func read(r io.Reader, name string) (*File, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(raw) > maxBytes {
		return nil, &Error{Name: name, Message: fmt.Sprintf("the file is longer than %d bytes", maxBytes)}
	}
	return Parse(name, raw)
}

// Parse parses a file that was read already.
func Parse(name string, raw []byte) (*File, error) {
	var tree *ast.File
	err := guard(func() (err error) {
		// A byte order mark is not part of the text.
		tokens := lexer.Tokenize(string(bytes.TrimPrefix(raw, []byte("\ufeff"))))
		if deep := tooDeep(tokens); deep != nil {
			e := &Error{Name: name, Message: fmt.Sprintf("lists and members are nested more than %d deep", maxDepth)}
			e.place(deep)
			return e
		}
		tree, err = parser.Parse(tokens, 0)
		return err
	})
	if err != nil {
		return nil, locate(name, err)
	}
	f := &File{Name: name}
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case f.root != nil:
			return nil, f.at(doc.Body, "the file holds more than one document")
		default:
			f.root = doc.Body
		}
	}
	return f, nil
}

// tooDeep returns the token with which the nesting becomes too deep, or nil.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			entries, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType: // several in a line: "- - a"
			entries++
		case token.MappingValueType:
			if flow == 0 {
				entries++
			}
		}
		if flow+entries > maxDepth || t.Position.IndentNum > 8*maxDepth {
			return t
		}
	}
	return nil
}

// Decode fills in v. Members that v does not have are errors. An empty file
// leaves v as it is.
func (f *File) Decode(v any) error {
	if f.root == nil {
		return nil
	}
	if err := guard(func() error { return yaml.NodeToValue(f.root, v, yaml.Strict()) }); err != nil {
		return locate(f.Name, err)
	}
	return nil
}

// guard returns the error of read, or one in the place of a panic: the YAML
// library does that on "list: ! ", a tag without a value.
func guard(read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML cannot be understood (%v)", r)
		}
	}()
	return read()
}

// Has reports whether there is something at a path: strings are members, ints
// are items counted from 0.
func (f *File) Has(path ...any) bool {
	_, exact := f.find(path)
	return exact
}

// Errorf returns an error at a path, or at the nearest place above it that the
// file has.
func (f *File) Errorf(path []any, format string, args ...any) error {
	node, _ := f.find(path)
	return f.at(node, fmt.Sprintf(format, args...))
}

func (f *File) at(node ast.Node, message string) error {
	e := &Error{Name: f.Name, Message: message}
	if node != nil {
		e.place(start(node))
	}
	return e
}

// start returns the first token of a node: the parser gives a mapping the
// token of its first colon.
func start(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return node.GetToken()
}

func (e *Error) place(t *token.Token) {
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
}

// find returns the node at a path, or the last one on the way to it.
func (f *File) find(path []any) (last ast.Node, exact bool) {
	node := f.root
	for _, step := range path {
		next := child(node, step)
		if next == nil {
			return node, false
		}
		node = next
	}
	return node, node != nil
}

func child(node ast.Node, step any) ast.Node {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return child(n.Value, step)
	case *ast.TagNode:
		return child(n.Value, step)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if keyed(v, step) {
				return v.Value
			}
		}
	case *ast.MappingValueNode:
		if keyed(n, step) {
			return n.Value
		}
	case *ast.SequenceNode:
		if i, ok := step.(int); ok && i >= 0 && i < len(n.Values) {
			return n.Values[i]
		}
	}
	return nil
}

func keyed(v *ast.MappingValueNode, step any) bool {
	name, ok := step.(string)
	return ok && v.Key.GetToken() != nil && v.Key.GetToken().Value == name
}

// locate turns an error of the YAML library into one with a place.
func locate(name string, err error) error {
	var kept *Error
	if errors.As(err, &kept) {
		return kept
	}
	e := &Error{Name: name, Message: strings.TrimSpace(err.Error())}
	var placed yaml.Error
	if errors.As(err, &placed) {
		e.Message = strings.TrimSpace(placed.GetMessage())
		e.place(placed.GetToken())
	}
	e.Message = withoutValues(e.Message, placed)
	return e
}

// These patterns match the parts of a file that messages of the YAML library repeat.
var (
	quoted  = regexp.MustCompile(`(?s)".*"`)
	aliased = regexp.MustCompile(`(?s)(by alias name ).*`)
	member  = regexp.MustCompile(`^[A-Za-z0-9_.$/-]*`)
)

// withoutValues returns a message of the YAML library without the values that it repeats: a mistake in the file may
// have put a secret there. The names of members stay as far as they look like names.
func withoutValues(message string, err yaml.Error) string {
	var overflow *yaml.OverflowError
	if errors.As(err, &overflow) {
		return fmt.Sprintf("the number is too large for a value of the type %s", overflow.DstType)
	}
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && (unknown.Token.Next == nil || unknown.Token.Next.Type != token.MappingValueType) {
		return "this value has no name; write the name, a colon and a blank before it"
	}
	if err == nil {
		return aliased.ReplaceAllString(message, "${1}…")
	}
	named := unknown != nil || strings.HasPrefix(message, "mapping key ") ||
		strings.HasPrefix(message, "duplicate key ")
	return quoted.ReplaceAllStringFunc(message, func(text string) string {
		switch name := member.FindString(text[1:]); {
		case !named:
			return `"…"`
		case len(name) == len(text)-2:
			return text
		default:
			return `"` + name + `…" (a name is followed by a colon and a blank)`
		}
	})
}
