package judge

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var rootRules = []Rule{{
	Name: "roots",
	Requirements: []string{
		ids.RootsCapabilityDeclared, ids.RootsListAnswered, ids.RootsErrorUnsupported, ids.RootsRootFileURI,
		ids.RootsRootURIUnique, ids.RootsSecurityValidateURIs, ids.RootsListChangedNotify,
	},
	Judge: judgeRoots,
}}

var roots = feature{capability: "roots", method: "roots/list", declared: ids.RootsCapabilityDeclared,
	honoured: ids.RootsListAnswered}

// client/roots
func judgeRoots(c *Conversation, rec *Recorder) {
	var before *Exchange
	changes := c.notifications(wire.Client, listChanged("roots"))
	announced := c.Declared(wire.Client, "roots.listChanged")
	judgeFeature(c, roots, rec, func(*Exchange, *Recorder) {}, func(x *Exchange, _ *Recorder) {
		list, ok := x.Result()["roots"].([]any)
		if !ok {
			judgeNoRoots(c, x, rec)
			return
		}
		judgeRootList(x, list, rec)
		if before != nil && announced {
			c.judgeRootChange(before, x, changes, rec)
		}
		before = x
	})
}

// judgeNoRoots judges an answer without a list (client/roots#error-handling).
func judgeNoRoots(c *Conversation, x *Exchange, rec *Recorder) {
	answer := x.Response.Msg
	switch {
	case answer.Kind == wire.Result && c.Declared(wire.Client, "roots"):
		rec.Fail(ids.RootsListAnswered, wire.Client, "the result has no list of roots", x.Events()...)
	case answer.Kind == wire.ErrorResponse && answer.Error != nil && answer.Error.HasCode &&
		!c.Declared(wire.Client, "roots"):
		rec.Check(answer.Error.Code == -32601, ids.RootsErrorUnsupported, wire.Client,
			"a client that does not declare roots answers with error "+
				wire.Show(wire.At(answer.Value(), "error", "code"))+", not -32601",
			declaring(c, wire.Client, x.Events()...)...)
	}
}

func judgeRootList(x *Exchange, list []any, rec *Recorder) {
	seen := make(map[string]bool)
	for _, root := range list {
		uri, ok := wire.At(root, "uri").(string)
		if !ok {
			continue // the schema judges it
		}
		shown := "the root " + wire.Quote(uri, 80)
		rec.Check(len(uri) >= 7 && strings.EqualFold(uri[:7], "file://"), ids.RootsRootFileURI, wire.Client,
			shown+" is not a file:// URI", x.Events()...)
		rec.Check(!seen[uri], ids.RootsRootURIUnique, wire.Client, shown+" is listed twice", x.Events()...)
		seen[uri] = true
		rec.Check(!traverses(uri), ids.RootsSecurityValidateURIs, wire.Client, shown+" has a dot-dot segment",
			x.Events()...)
	}
}

// windows matches the beginning of a path with a drive letter.
var windows = regexp.MustCompile(`^/?[A-Za-z](?::|%3[Aa]|\|)`)

// traverses reports whether the path of a URI has a dot-dot segment, escaped or not. A
// backslash divides segments only where drives have letters: elsewhere it may be part
// of the name of a file.
func traverses(uri string) bool {
	_, path, _ := strings.Cut(uri, "://")
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	drive := windows.MatchString(path)
	if unescaped, err := url.PathUnescape(path); err == nil {
		path = unescaped
	}
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || drive && r == '\\' }), "..")
}

// sameRoots reports whether two lists hold the same roots, in whatever order.
func sameRoots(a, b *Exchange) bool {
	set := func(x *Exchange) map[[2]string]bool {
		roots := make(map[[2]string]bool)
		for _, root := range wire.Items(x.Result(), "roots") {
			uri, _ := wire.At(root, "uri").(string)
			name, _ := wire.At(root, "name").(string)
			roots[[2]string{uri, name}] = true
		}
		return roots
	}
	return maps.Equal(set(a), set(b))
}

// judgeRootChange compares a list with the one before it: what changed has to
// be announced (client/roots#root-list-changes). The announcement may come late,
// and answers may overtake each other, so that the older list comes last.
func (c *Conversation) judgeRootChange(before, after *Exchange, changes []*wire.Event, rec *Recorder) {
	if sameRoots(before, after) {
		return
	}
	i, _ := slices.BinarySearchFunc(changes, min(before.Request.Seq, after.Request.Seq),
		func(e *wire.Event, seq int) int { return e.Seq - seq })
	if before.Request.Stream != transport.Stdout && before.Request.Stream != transport.Stdin {
		i = 0 // over HTTP answers and notifications overtake each other
	}
	if announced := i < len(changes); announced || c.wentOn(after.Response) {
		rec.Check(announced, ids.RootsListChangedNotify, wire.Client,
			"the roots have changed, but no notifications/roots/list_changed came", before.Response, after.Request,
			after.Response)
	}
}
