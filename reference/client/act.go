package client

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// act is how the stand-alone client decides where a person would: it is told in
// advance, in turn for each form, each sampling request and each list of roots.
type act struct {
	mu    sync.Mutex
	turns map[string][]string // what is left to do, by topic
	roots []any
	// folder is a root that is listed as long as it exists; "" for none.
	folder string
}

// folderLook is how often the client looks whether the folder is still there.
const folderLook = 50 * time.Millisecond

// newAct reads topics with what is to be done: "elicitation=decline sampling=reject".
func newAct(told string) *act {
	a := &act{turns: make(map[string][]string), roots: []any{map[string]any{"uri": "file:///tmp", "name": "tmp"}}}
	for topic := range strings.FieldsSeq(told) {
		name, what, _ := strings.Cut(topic, "=")
		if name == "roots" && filepath.IsAbs(what) {
			a.folder = what
			continue
		}
		a.tell(name, strings.Split(what, ",")...)
	}
	return a
}

// tell adds to what is to be done.
func (a *act) tell(topic string, what ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[topic] = append(a.turns[topic], what...)
}

// next returns what to do this time, or "" when nothing more is told.
func (a *act) next(topic string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.turns[topic]) == 0 {
		return ""
	}
	what := a.turns[topic][0]
	a.turns[topic] = a.turns[topic][1:]
	return what
}

// list returns the roots as they are now.
func (a *act) list() []any {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := append([]any{}, a.roots...)
	if a.there() {
		list = append(list, map[string]any{"uri": (&url.URL{Scheme: "file", Path: filepath.ToSlash(a.folder)}).String(), "name": "a folder"})
	}
	return list
}

func (a *act) there() bool {
	if a.folder == "" {
		return false
	}
	info, err := os.Stat(a.folder)
	return err == nil && info.IsDir()
}

// change makes the next change to the roots, and reports whether there was one.
func (a *act) change() bool {
	what := a.next("roots")
	a.mu.Lock()
	defer a.mu.Unlock()
	last := len(a.roots) - 1
	switch {
	case what == "add":
		a.roots = append(a.roots, map[string]any{"uri": "file:///", "name": "everything"})
	case what == "modify" && last >= 0:
		root, _ := a.roots[last].(map[string]any)
		a.roots[last] = map[string]any{"uri": root["uri"], "name": "another name"}
	case what == "remove" && last >= 0:
		a.roots = a.roots[:last]
	default:
		return false
	}
	return true
}

// watch tells when the folder is gone.
func (a *act) watch(ctx context.Context, gone func()) {
	if !a.there() {
		return
	}
	look := time.NewTicker(folderLook)
	defer look.Stop()
	for a.there() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
	gone()
}

// elicit decides on a form.
func (a *act) elicit(schema any) any {
	switch what := a.next("elicitation"); what {
	case "decline", "cancel":
		return map[string]any{"action": what}
	}
	return map[string]any{"action": "accept", "content": fill(schema)}
}

// rejected is the answer to a sampling request that the user turns down
// (client/sampling#error-handling).
var rejected = &wire.Error{Code: -1, Message: "User rejected sampling request"}
