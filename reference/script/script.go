// Package script reads scripted exchanges: Markdown files with prose and fenced blocks. A block holds a message to
// send or a message to expect. The same format serves checks of servers and servers for clients; docs/scripts.md
// describes it.
package script

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Script is one exchange.
type Script struct {
	// Name is the path of the file within its folder, without extension.
	Name string
	// File is the path to show in messages.
	File string
	// Title is the text of the first heading, or the name.
	Title string
	// Requirements of the catalogue that the exchange is about. A different exchange
	// breaks the first of them. Without any, the script is a requirement of its
	// own.
	Requirements []string
	// Level of a requirement of its own: MUST, SHOULD or MAY.
	Level string
	// Needs are capabilities that the other side must declare, as dotted paths.
	Needs []string
	// Transports on which the script makes sense; none means all.
	Transports []string
	// Session is the state in which the script begins.
	Session Session
	// Capabilities that our side declares instead of the usual ones, or nil.
	Capabilities map[string]any
	Steps        []Step
}

// Session is a state in which a script begins.
type Session string

// The states.
const (
	Ready Session = "ready" // after the handshake
	Raw   Session = "raw"   // nothing was sent yet
)

// Kind of a step.
type Kind string

// The kinds.
const (
	Send   Kind = "send"         // send a message
	Text   Kind = "text"         // send a text instead of a message
	Expect Kind = "expect"       // a message must come, and be like this
	Never  Kind = "never"        // no message like this may have come
	Branch Kind = "when"         // go on as the next message says
	GiveUp Kind = "inconclusive" // end: nothing can be said, for the reason in the text
)

// Step is one block, or a branch with the blocks in it.
type Step struct {
	Kind Kind
	Line int // where the block begins, from 1
	// Value is the message or the pattern, decoded. A Branch has none.
	Value any
	// Text to send instead of a message, or the reason to give up.
	Text string
	// As names a request that is sent, Of the request whose response is
	// expected; "" is the latest.
	As, Of string
	// Arms of a Branch, of which the last may be without a pattern.
	Arms []Arm
}

// Arm of a branch.
type Arm struct {
	Line    int
	Pattern any // nil for otherwise
	Steps   []Step
}

// Error is a fault in a script file.
type Error struct {
	File    string
	Line    int // from 1; 0 for the file as a whole
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Bounds of what is read.
const (
	maxBytes   = 1 << 20 // a file
	maxScripts = 10_000
)

// ReadDir reads all scripts below the root of a file system: the files whose
// names end in .md, but for README.md. Shown is put before their paths in messages.
func ReadDir(fsys fs.FS, shown string) ([]*Script, error) {
	var all []*Script
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || path.Ext(name) != ".md" || path.Base(name) == "README.md":
			return nil
		case len(all) >= maxScripts:
			return fmt.Errorf("there are more than %d scripts", maxScripts)
		}
		s, err := readFile(fsys, name, path.Join(shown, name))
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func readFile(fsys fs.FS, name, shown string) (*Script, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxBytes {
		return nil, &Error{shown, 0, fmt.Sprintf("the file is longer than %d bytes", maxBytes)}
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	s, err := Parse(shown, data)
	if err != nil {
		return nil, err
	}
	s.Name = strings.TrimSuffix(name, ".md")
	if s.Title == "" {
		s.Title = s.Name
	}
	return s, nil
}

// Parse reads one script. File is named in errors, which are of type *Error.
func Parse(file string, data []byte) (*Script, error) {
	p := &parser{script: &Script{File: file, Session: Ready}}
	p.lines = strings.Split(strings.ReplaceAll(string(bytes.TrimPrefix(data, []byte("\ufeff"))), "\r\n", "\n"), "\n")
	p.script.Name = strings.TrimSuffix(path.Base(file), ".md")
	if err := p.header(); err != nil {
		return nil, err
	}
	blocks, err := p.blocks()
	if err != nil {
		return nil, err
	}
	steps, rest, err := p.steps(blocks, false)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, p.errorf(rest[0].line, "%s without a block when before it", rest[0].role)
	}
	if len(steps) == 0 {
		return nil, p.errorf(0, "the script has no block to send or to expect")
	}
	if err := p.names(steps, make(map[string]bool)); err != nil {
		return nil, err
	}
	p.script.Steps = steps
	return p.script, nil
}

type parser struct {
	script *Script
	lines  []string
	next   int // index of the first line that was not read
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return &Error{p.script.File, line, fmt.Sprintf(format, args...)}
}

// header reads the settings between two lines of hyphens at the beginning.
func (p *parser) header() error {
	if strings.TrimRight(p.lines[0], " ") != "---" {
		return nil
	}
	seen := make(map[string]bool)
	for i, line := range p.lines[1:] {
		number := i + 2
		line = strings.TrimSpace(line)
		if line == "---" {
			p.next = number
			return nil
		}
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return p.errorf(number, "%q is not a setting, which is written as name: value", line)
		}
		if seen[name] {
			return p.errorf(number, "%s is set twice", name)
		}
		seen[name] = true
		if err := p.set(name, strings.TrimSpace(value)); err != nil {
			return p.errorf(number, "%s", err)
		}
	}
	return p.errorf(1, "the settings do not end with a line of three hyphens")
}

func (p *parser) set(name, value string) error {
	s := p.script
	switch name {
	case "requirements":
		s.Requirements = listed(value)
	case "needs":
		s.Needs = listed(value)
	case "level":
		if s.Level = value; !slices.Contains([]string{"MUST", "SHOULD", "MAY"}, value) {
			return fmt.Errorf("level is %q; it takes MUST, SHOULD or MAY", value)
		}
	case "transports":
		s.Transports = listed(value)
		for _, t := range s.Transports {
			if !slices.Contains([]string{"stdio", "http", "sse", "custom"}, t) {
				return fmt.Errorf("there is no transport %q; there are stdio, http, sse and custom", t)
			}
		}
	case "session":
		if s.Session = Session(value); s.Session != Ready && s.Session != Raw {
			return fmt.Errorf("session is %q; it takes ready or raw", value)
		}
	case "capabilities":
		v, _, err := wire.Decode([]byte(value))
		object, ok := v.(map[string]any)
		if err != nil || !ok {
			return fmt.Errorf("capabilities is %q, not a JSON object", value)
		}
		s.Capabilities = object
	default:
		return fmt.Errorf("there is no setting %q; there are requirements, level, needs, transports, session "+
			"and capabilities",
			name)
	}
	return nil
}

// listed splits a list at its commas.
func listed(value string) []string {
	var all []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// block is a fenced block that has a role.
type block struct {
	line       int // of the opening fence
	language   string
	role       string
	attributes map[string]string
	text       string
}

var (
	fence   = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[ \t]*(.*)$")
	heading = regexp.MustCompile(`^#{1,6}[ \t]+(.*?)[ \t#]*$`)
)

// blocks reads the rest of the file. A fenced block that has no second word in
// its first line is part of the prose.
func (p *parser) blocks() ([]block, error) {
	var all []block
	for p.next < len(p.lines) {
		line := p.lines[p.next]
		p.next++
		if m := heading.FindStringSubmatch(line); m != nil && p.script.Title == "" {
			p.script.Title = m[1]
		}
		open := fence.FindStringSubmatch(line)
		if open == nil {
			continue
		}
		b := block{line: p.next, attributes: make(map[string]string)}
		words := strings.Fields(open[2])
		closed := false
		var text []string
		for !closed && p.next < len(p.lines) {
			line := strings.TrimSpace(p.lines[p.next])
			if closed = strings.HasPrefix(line, open[1]) && strings.Trim(line, open[1][:1]) == ""; !closed {
				text = append(text, p.lines[p.next])
			}
			p.next++
		}
		if !closed {
			return nil, p.errorf(b.line, "the block has no end")
		}
		if len(words) < 2 {
			continue
		}
		b.language, b.role, b.text = words[0], words[1], strings.Join(text, "\n")
		for _, word := range words[2:] {
			name, value, ok := strings.Cut(word, "=")
			if !ok || value == "" {
				return nil, p.errorf(b.line, "%q is not an attribute, which is written as name=value", word)
			}
			b.attributes[name] = value
		}
		all = append(all, b)
	}
	return all, nil
}

// attributes that the blocks of each role take.
var attributes = map[string][]string{
	"send": {"as"}, "expect": {"of"}, "never": nil, "when": nil, "otherwise": nil, "end": nil, "inconclusive": nil,
}

// steps makes steps of blocks. Within a branch they end where the arm does.
func (p *parser) steps(blocks []block, inArm bool) (steps []Step, rest []block, err error) {
	for len(blocks) > 0 {
		b := blocks[0]
		known, ok := attributes[b.role]
		if !ok {
			return nil, nil, p.errorf(b.line,
				"there is no block %q; there are send, expect, never, when, otherwise, end and inconclusive", b.role)
		}
		for name := range b.attributes {
			if !slices.Contains(known, name) {
				return nil, nil, p.errorf(b.line, "a block %s has no attribute %s", b.role, name)
			}
		}
		var step Step
		switch b.role {
		case "when", "otherwise", "end":
			if inArm || b.role != "when" {
				return steps, blocks, nil
			}
			step, blocks, err = p.branch(blocks)
		default:
			step, err = p.step(b)
			blocks = blocks[1:]
		}
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil, nil
}

// branch makes a step of the blocks from a when to the end that belongs to it.
func (p *parser) branch(blocks []block) (Step, []block, error) {
	step := Step{Kind: Branch, Line: blocks[0].line}
	for len(blocks) > 0 {
		b := blocks[0]
		if b.role == "end" {
			return step, blocks[1:], nil
		}
		if n := len(step.Arms); n > 0 && step.Arms[n-1].Pattern == nil {
			return step, nil, p.errorf(b.line, "after otherwise comes the end of the branch, not %s", b.role)
		}
		arm := Arm{Line: b.line}
		if b.role == "when" {
			pattern, err := p.json(b)
			if err != nil {
				return step, nil, err
			}
			arm.Pattern = pattern
		}
		var err error
		if arm.Steps, blocks, err = p.steps(blocks[1:], true); err != nil {
			return step, nil, err
		}
		step.Arms = append(step.Arms, arm)
	}
	return step, nil, p.errorf(step.Line, "the branch does not end with a block end")
}

func (p *parser) step(b block) (Step, error) {
	step := Step{Kind: Kind(b.role), Line: b.line, As: b.attributes["as"], Of: b.attributes["of"]}
	switch {
	case step.Kind == GiveUp:
		step.Text = strings.Join(strings.Fields(b.text), " ")
		return step, nil
	case step.Kind == Send && b.language == "text":
		step.Kind, step.Text = Text, b.text
		return step, nil
	}
	v, err := p.json(b)
	if err != nil {
		return step, err
	}
	if _, object := v.(map[string]any); !object && step.Kind != Send {
		return step, p.errorf(b.line, "a message is expected, so the block must hold a JSON object")
	}
	step.Value = v
	return step, nil
}

// json decodes the text of a block.
func (p *parser) json(b block) (any, error) {
	if b.language != "json" {
		return nil, p.errorf(b.line, "the language of the block is %s; it takes json, or text to send a text as it is",
			b.language)
	}
	v, issues, err := wire.Decode([]byte(b.text))
	switch syntax := (*wire.SyntaxError)(nil); {
	case errors.As(err, &syntax):
		return nil, p.errorf(b.line+1+strings.Count(b.text[:min(syntax.Offset, len(b.text))], "\n"), "%s", err)
	case err != nil:
		return nil, p.errorf(b.line, "%s", err)
	case len(issues) > 0:
		return nil, p.errorf(b.line, "%s", issues[0].Detail)
	}
	if err := checkPattern(v); err != nil {
		return nil, p.errorf(b.line, "%s", err)
	}
	return v, nil
}

// names checks that each request that a step refers to is sent before it.
func (p *parser) names(steps []Step, sent map[string]bool) error {
	for _, step := range steps {
		if step.Of != "" && !sent[step.Of] {
			return p.errorf(step.Line, "no earlier request is named %s", step.Of)
		}
		if step.As != "" {
			sent[step.As] = true
		}
		for _, arm := range step.Arms {
			if err := p.names(arm.Steps, sent); err != nil {
				return err
			}
		}
	}
	return nil
}

// Methods returns the methods of the requests and notifications that the script
// expects, each once.
func (s *Script) Methods() []string {
	var all []string
	note := func(pattern any) {
		method, ok := wire.At(pattern, "method").(string)
		if ok && !slices.Contains(all, method) && !IsResponse(pattern) {
			all = append(all, method)
		}
	}
	s.each(func(step Step) {
		if step.Kind == Expect {
			note(step.Value)
		}
		for _, arm := range step.Arms {
			note(arm.Pattern)
		}
	})
	return all
}

// Line returns the line of the first step of a kind, or 0.
func (s *Script) Line(k Kind) int {
	line := 0
	s.each(func(step Step) {
		if step.Kind == k && line == 0 {
			line = step.Line
		}
	})
	return line
}

// each visits all steps, those in branches too.
func (s *Script) each(visit func(Step)) {
	var walk func([]Step)
	walk = func(steps []Step) {
		for _, step := range steps {
			visit(step)
			for _, arm := range step.Arms {
				walk(arm.Steps)
			}
		}
	}
	walk(s.Steps)
}

// IsResponse reports whether a message or pattern is that of a response: it has no
// method.
func IsResponse(message any) bool {
	object, ok := message.(map[string]any)
	_, has := object["method"]
	return ok && !has
}

// Complete adds what a message leaves out: jsonrpc and, if it is a request, an
// id. A member that is to be ${absent} is left out. It reports whether the
// message is a request.
func Complete(message map[string]any, newID func() any) (complete map[string]any, request bool) {
	complete = map[string]any{"jsonrpc": "2.0"}
	for name, v := range message {
		complete[name] = v
	}
	method, isCall := complete["method"].(string)
	if _, has := complete["id"]; isCall && !has && !strings.HasPrefix(method, "notifications/") {
		complete["id"] = newID()
	}
	strip(complete)
	_, identified := complete["id"]
	return complete, isCall && identified
}

// strip takes out the members that are to be absent.
func strip(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			strip(item)
		}
	case map[string]any:
		for name, member := range v {
			if member == absent {
				delete(v, name)
			} else {
				strip(member)
			}
		}
	}
}
