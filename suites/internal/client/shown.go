package client

import (
	"context"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// The scenarios in this file have servers with odd but legal names, URIs, types and dates in their lists. A server
// serves everything that it lists.

// shown describes the items that a server adds to the first page of a list.
type shown struct {
	scenario, family, requirement string
	method                        string // of the list
	// item makes the nth item from a member of the family.
	item func(n int, m family.Member) map[string]any
	// one and several are words for findings: see [client.T.offered].
	one, several string
	// named says that the members identify the items. The client has to use them as they were listed.
	named bool
}

var shownScenarios = []*client.Scenario{
	shown{
		scenario: "lists/tool-names", family: "names", requirement: ids.ToolsCallListedName, method: "tools/list",
		named: true,
		one:   "a tool came whose name is ", several: "tools came with unusual names",
		item: func(_ int, m family.Member) map[string]any {
			return map[string]any{"name": m.Value(), "description": "Its name: " + m.Is + ".",
				"inputSchema": map[string]any{"type": "object"}}
		},
	}.list(),
	shown{
		scenario: "lists/prompt-names", family: "names", requirement: ids.PromptsGetListedName, method: "prompts/list",
		named: true,
		one:   "a prompt came whose name is ", several: "prompts came with unusual names",
		item: func(_ int, m family.Member) map[string]any {
			return map[string]any{"name": m.Value(), "description": "Its name: " + m.Is + "."}
		},
	}.list(),
	shown{
		scenario: "lists/uris", family: "uris", requirement: ids.ResourcesURISchemeCustomAllowed,
		method: "resources/list", named: true,
		one: "a resource came whose URI is ", several: "resources came with unusual URIs",
		item: func(n int, m family.Member) map[string]any {
			return map[string]any{"uri": m.Value(), "name": "uri-" + strconv.Itoa(n), "mimeType": "text/plain"}
		},
	}.list(),
	shown{
		scenario: "lists/types", family: "mime-types", requirement: ids.ResourcesMimeTypeAny, method: "resources/list",
		one: "a resource came whose mimeType is ", several: "resources came with unusual MIME types",
		item: func(n int, m family.Member) map[string]any {
			item := map[string]any{"uri": "test://typed/" + strconv.Itoa(n), "name": "typed-" + strconv.Itoa(n)}
			if m.Value() != nil {
				item["mimeType"] = m.Value()
			}
			return item
		},
	}.list(),
	dated,
}

// list returns the scenario in which the list has the members of the family.
func (s shown) list() *client.Scenario {
	use := used[s.method]
	return &client.Scenario{
		Name: s.scenario, Families: []string{s.family}, Smaller: narrowed(
			s.family), Requirements: []string{s.requirement},
		Needs: "the client used no item of " + s.method,
		Options: func(run *client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
				s.method: server.Edit(func(r *server.Request, result map[string]any) {
					page, ok := result[client.Listed[s.method]].([]any)
					if !ok || r.Params["cursor"] != nil {
						return
					}
					for _, item := range s.items(run.Choice) {
						page = append(page, item)
					}
					result[client.Listed[s.method]] = page
				}),
				use.method: func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					for _, item := range s.items(run.Choice) {
						if r.Params[use.key] == item[use.key] {
							return asListed(use.method, item), nil
						}
					}
					return next(ctx, r)
				},
			}}}
		},
		Judge: s.judge,
	}
}

// items returns the items to add to the list. They belong to the caller.
func (s shown) items(c family.Choice) []map[string]any {
	var items []map[string]any
	for n, m := range c.Draw(s.family, s.scenario) {
		items = append(items, s.item(n, m))
	}
	return items
}

// asListed returns the result with which a method serves an item.
func asListed(method string, item map[string]any) map[string]any {
	text := map[string]any{"type": "text", "text": "As it was listed."}
	switch method {
	case "tools/call":
		return map[string]any{"content": []any{text}}
	case "prompts/get":
		return map[string]any{"messages": []any{map[string]any{"role": "user", "content": text}}}
	}
	contents := map[string]any{"uri": item["uri"], "text": "As it was listed."}
	if kind, ok := item["mimeType"]; ok {
		contents["mimeType"] = kind
	}
	return map[string]any{"contents": []any{contents}}
}

func (s shown) judge(t *client.T) {
	if x := t.Sent(s.method); x == nil || x.Result() == nil {
		return
	}
	if ok, decided, _ := t.Continued(); decided && !ok || !s.named {
		t.JudgeContinued(offered(t, s.one, s.several), s.requirement)
		return
	}
	judgeNames(t, s)
}

// judgeNames judges whether the client uses the names of a list as they stand there. A client may know an unlisted
// name from elsewhere, unless it is a listed name in another spelling.
func judgeNames(t *client.T, s shown) {
	use := used[s.method]
	members := t.Choice.Draw(s.family, s.scenario)
	found := new(family.Findings)
	for _, c := range t.Conversations {
		var list *wire.Event
		for _, x := range client.RequestsOf(c) {
			if x.Method() == s.method && x.Result() != nil && list == nil {
				list = x.Response
			}
			given, ok := wire.At(x.Request.Msg.Params, use.key).(string)
			if !ok || x.Method() != use.method || list == nil || list.Seq > x.Request.Seq {
				continue
			}
			if i := slices.IndexFunc(members, func(m family.Member) bool { return m.Str() == given }); i >= 0 {
				found.Tried = append(found.Tried, members[i])
				t.Exercised(s.requirement)
				continue
			}
			for _, m := range members {
				switch {
				case s.method == "resources/list" && sameURI(given, m.Str()):
					t.Recorder().Note(s.requirement, wire.Client,
						"the client reads "+wire.Quote(given, 60)+", which is the same as the listed "+m.String()+
							" once both are normalised")
				case resembles(given, m.Str()):
					found.Add(m, s.requirement, "the client uses "+wire.Quote(given, 60)+" of "+s.method+
						", which lists "+m.String(), false, []*wire.Event{list, x.Request})
				}
			}
		}
	}
	recordVaried(t, found)
}

// resembles reports whether a program may have made a text from another one.
func resembles(text, of string) bool {
	const cut = 32 // of a name that was cut off there is so much left
	return slices.Contains(likenesses(of), letters(text)) || len(text) >= cut && strings.HasPrefix(of, text)
}

// uriParts matches the parts of a URI: scheme, authority, path, and the rest (RFC 3986, appendix B).
var uriParts = regexp.MustCompile(`^([^:/?#]+):(//[^/?#]*)?([^?#]*)(.*)$`)

// sameURI reports whether two URIs are the same after the normalisation of RFC 3986, sections 6.2.2 and 6.2.3. A
// client that normalises a URI so has not altered it.
func sameURI(a, b string) bool { return normalURI(a) == normalURI(b) }

func normalURI(uri string) string {
	parts := uriParts.FindStringSubmatch(escapes.ReplaceAllStringFunc(uri, func(escape string) string {
		c, _ := strconv.ParseUint(escape[1:], 16, 8) // the pattern has hexadecimal digits
		if r := rune(c); r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._~", r)) {
			return string(r)
		}
		return strings.ToUpper(escape)
	}))
	if parts == nil {
		return uri
	}
	scheme, authority, place := strings.ToLower(parts[1]), parts[2], parts[3]
	if at := strings.LastIndex(authority, "@") + 1; authority != "" {
		authority = authority[:at] + strings.ToLower(authority[at:])
		if port, web := map[string]string{"http": ":80", "https": ":443"}[scheme]; web {
			authority = strings.TrimSuffix(authority, port)
			if place == "" {
				place = "/"
			}
		}
		place = withoutDots(place)
	}
	return scheme + ":" + authority + place + parts[4]
}

var escapes = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// withoutDots removes the segments . and .. of a path.
func withoutDots(of string) string {
	var kept []string
	all := strings.Split(of, "/")
	for i, segment := range all {
		switch segment {
		case "..":
			kept = kept[:max(min(1, len(kept)), len(kept)-1)]
		case ".":
		default:
			kept = append(kept, segment)
			continue
		}
		if i == len(all)-1 {
			kept = append(kept, "")
		}
	}
	return strings.Join(kept, "/")
}

// letters returns the letters and digits of a decoded text, in lower case. Programs that clean or normalise a text
// leave these.
func letters(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(text))
}

// likenesses returns the letters of a text in the forms that programs make of it. These are the text as it is, with
// letter and accent as one character, and, for a URI, without default port, dots in its path, fragment or query.
func likenesses(text string) []string {
	all := []string{letters(text), letters(strings.ReplaceAll(text, "e\u0301", "é"))}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return all
	}
	u.Host = strings.TrimSuffix(u.Host, ":80")
	if u.Path != "" {
		u.Path, u.RawPath = path.Clean(u.Path), ""
	}
	all = append(all, letters(u.String()))
	u.Fragment, u.RawFragment = "", ""
	all = append(all, letters(u.String()))
	u.RawQuery = ""
	return append(all, letters(u.String()))
}

// dated is a server that dates the changes of resources and blocks of content.
var dated = &client.Scenario{
	Name: "content/dates", Families: []string{"dates"}, Smaller: narrowed("dates"),
	Requirements: []string{ids.ContentAnnotationsOptional},
	Needs:        "the client requested no list of resources, and called no tool",
	Options: func(run *client.ScenarioRun) server.Options {
		s := shown{
			scenario: "content/dates", family: "dates", method: "resources/list",
			item: func(n int, m family.Member) map[string]any {
				return map[string]any{
					"uri": "test://dated/" + strconv.Itoa(n), "name": "dated-" + strconv.Itoa(n),
					"annotations": map[string]any{"lastModified": m.Value()},
				}
			},
		}
		o := s.list().Options(run)
		o.Behaviour.Wrap("tools/call", server.Edit(func(_ *server.Request, result map[string]any) {
			content, ok := result["content"].([]any)
			if !ok || result["structuredContent"] != nil {
				return
			}
			content = slices.Clone(content)
			for _, item := range s.items(run.Choice) {
				content = append(content, map[string]any{"type": "text", "text": "It has a date.",
					"annotations": item["annotations"]})
			}
			result["content"] = content
		}))
		return o
	},
	Judge: func(t *client.T) {
		if t.Sent("resources/list") != nil || t.Sent("tools/call") != nil {
			t.JudgeContinued(offered(t, "something came whose lastModified is ",
				"resources and content came with every form of lastModified"), ids.ContentAnnotationsOptional)
		}
	},
}
