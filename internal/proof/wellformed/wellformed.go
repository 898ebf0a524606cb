// Package wellformed says what is wrong with the form of a report, whatever a target has put
// into it: tests of the reporters, of runs and of the command ask it alike.
package wellformed

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Report returns what is wrong with a report, which its file's name tells apart: .json,
// .jsonl, .sarif, .xml, .svg, .html, .md, .txt for a terminal and .github for the log of GitHub Actions.
func Report(name, text string) error {
	if text == "" && path.Ext(name) != ".jsonl" { // nothing may have happened
		return errors.New("it is empty")
	}
	switch path.Ext(name) {
	case ".json", ".sarif":
		return JSON(text)
	case ".jsonl":
		for line := range strings.Lines(text) {
			if err := JSON(line); err != nil {
				return err
			}
		}
		return nil
	case ".xml", ".svg":
		return XML(text)
	case ".html":
		return HTML(text)
	case ".md":
		return errors.Join(Plain(text), Markdown(text))
	case ".txt":
		return Plain(text)
	case ".github":
		return Commands(text)
	}
	return fmt.Errorf("nothing is known of the form of %s", name)
}

// JSON wants one value and nothing after it.
func JSON(text string) error {
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("it is not JSON: %.200q", text)
	}
	return nil
}

// XML wants one element, and only characters that XML 1.0 has.
func XML(text string) error {
	d := xml.NewDecoder(strings.NewReader(text)) // it is strict about both
	for roots, depth := 0, 0; ; {
		token, err := d.Token()
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
		case xml.EndElement:
			depth--
		}
		switch {
		case errors.Is(err, io.EOF) && roots == 1:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("it has %d elements of the first level", roots)
		case err != nil:
			return err
		}
	}
}

// Plain wants nothing but printable characters and line ends, so that a terminal does nothing else with it.
func Plain(text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		for _, r := range line {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("%q in the line %.300q", r, line)
			}
		}
	}
	return nil
}

// workflowCommand is what GitHub Actions takes for a command, in one of its two forms.
var workflowCommand = regexp.MustCompile(`^\s*::|##\[`)

// Guarded wants no line that GitHub Actions takes for a command.
func Guarded(text string) error {
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		if workflowCommand.MatchString(line) {
			return fmt.Errorf("a command: %.200q", line)
		}
	}
	return nil
}

// annotation is a command of GitHub Actions that annotates, and no other.
var annotation = regexp.MustCompile(`^::(error|warning|notice)( [a-z]+=[^,:]*(,[a-z]+=[^,:]*)*)?::[^\r]*$`)

// Commands wants annotations alone, one in a line.
func Commands(text string) error {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if !annotation.MatchString(line) || strings.Contains(line, "##[") {
			return fmt.Errorf("no annotation: %.200q", line)
		}
	}
	return nil
}

// fence is the beginning or the end of a block of code.
var fence = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})")

// Markdown wants no HTML outside of code but line breaks, what folds, and addresses; and each block of code ended.
func Markdown(text string) error {
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		mark := fence.FindString(line)
		mark = strings.TrimSpace(mark)
		switch {
		case open == "" && mark != "":
			open = mark
			continue
		case open != "" && strings.HasPrefix(mark, open) && strings.Trim(line, " `~") == "":
			open = ""
			continue
		case open != "":
			continue
		}
		if i := tag(line); i >= 0 {
			return fmt.Errorf("markup in %.200q", line[i:])
		}
	}
	if open != "" {
		return errors.New("a block of code does not end")
	}
	return nil
}

var (
	code  = regexp.MustCompile("(`+)[^`].*?[^`]?(`+)")
	plain = regexp.MustCompile(
		`^</?(br|details|summary|b|sub|sup|code|kbd|p|a)( (id|name|open)(="[a-z0-9.-]*")?)?\s*/?>|^<https?://[^<>\s]*>`)
	begun = regexp.MustCompile(`<[A-Za-z/!?]`)
)

// tag returns where markup begins outside of code that is none of ours, or -1.
func tag(line string) int {
	line = code.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat(" ", len(s)) })
	for at := 0; ; {
		found := begun.FindStringIndex(line[at:])
		if found == nil {
			return -1
		}
		at += found[0]
		if (at == 0 || line[at-1] != '\\') && !plain.MatchString(line[at:]) {
			return at
		}
		at++
	}
}

// elements are those of our pages.
var elements = func() map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq("html head title body header main nav footer section div p h1 h2 h3 " +
		"small bdi span b br " +
		"dl dt dd ul ol li svg rect table thead tbody tr th td code pre form label select option input button " +
		"output details summary a script style meta") {
		all[name] = true
	}
	return all
}()

// HTML wants a page that can run, load and send nothing but what is ours: one script and one style without attributes,
// links to the net or into the page, no id twice.
func HTML(text string) error {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return err
	}
	ids, links, count := make(map[string]bool), make(map[string]bool), make(map[string]int)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		switch own := n.Data == "script" || n.Data == "style"; {
		case !elements[n.Data]:
			return fmt.Errorf("element %s", n.Data)
		case own && (len(n.Attr) > 0 || count[n.Data] > 1):
			return fmt.Errorf("%s %d, with the attributes %v", n.Data, count[n.Data], n.Attr)
		}
		for _, a := range n.Attr {
			id, inside := strings.CutPrefix(a.Val, "#")
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "action":
				return fmt.Errorf("attribute %s of %s", a.Key, n.Data)
			case a.Key == "href" && inside:
				links[id] = true
			case a.Key == "href" && !strings.HasPrefix(a.Val, "https://") && !strings.HasPrefix(a.Val, "http://"):
				return fmt.Errorf("link to %q", a.Val)
			case a.Key == "id" && ids[a.Val]:
				return fmt.Errorf("id %q occurs twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
	}
	for id := range links {
		if !ids[id] {
			return fmt.Errorf("link to the missing %q", id)
		}
	}
	return Plain(text)
}
