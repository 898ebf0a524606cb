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

// userActions are the decisions that a person would make: the stand-alone client
// is told them in advance, in turn for each form, each sampling request and each
// list of roots.
type userActions struct {
	mu      sync.Mutex
	pending map[string][]string // what is left to do, by topic
	roots   []any
	// folder is a root that is listed as long as it exists, or "".
	folder string
	listed bool // the folder was
}

// folderLook is how often the client checks whether the folder still exists.
const folderLook = 50 * time.Millisecond

// newUserActions reads topics with what to do: "elicitation=decline sampling=reject".
func newUserActions(told string) *userActions {
	a := &userActions{pending: make(map[string][]string),
		roots: []any{map[string]any{"uri": "file:///tmp", "name": "tmp"}}}
	for topic := range strings.FieldsSeq(told) {
		name, what, _ := strings.Cut(topic, "=")
		if name == "roots" && filepath.IsAbs(what) {
			a.folder = what
			continue
		}
		a.add(name, strings.Split(what, ",")...)
	}
	return a
}

// add adds actions to those of a topic.
func (a *userActions) add(topic string, what ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending[topic] = append(a.pending[topic], what...)
}

// next returns the next action of a topic, or "" when none is left.
func (a *userActions) next(topic string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending[topic]) == 0 {
		return ""
	}
	what := a.pending[topic][0]
	a.pending[topic] = a.pending[topic][1:]
	return what
}

// list returns the current roots.
func (a *userActions) list() []any {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := append([]any{}, a.roots...)
	if a.folderExists() {
		a.listed = true
		list = append(list, map[string]any{"uri": (&url.URL{Scheme: "file", Path: filepath.ToSlash(a.folder)}).String(),
			"name": "a folder"})
	}
	return list
}

func (a *userActions) folderExists() bool {
	if a.folder == "" {
		return false
	}
	info, err := os.Stat(a.folder)
	return err == nil && info.IsDir()
}

// change makes the next change to the roots, and reports whether there was one.
func (a *userActions) change() bool {
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

// watch calls gone when the folder has been removed after it was listed.
func (a *userActions) watch(ctx context.Context, gone func()) {
	if a.folder == "" {
		return
	}
	look := time.NewTicker(folderLook)
	defer look.Stop()
	for !a.folderGone() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
	gone()
}

func (a *userActions) folderGone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listed && !a.folderExists()
}

// elicit answers a form.
func (a *userActions) elicit(schema any) any {
	switch what := a.next("elicitation"); what {
	case "decline", "cancel":
		return map[string]any{"action": what}
	}
	return map[string]any{"action": "accept", "content": fill(schema)}
}

// rejected is the answer to a sampling request that the user rejects
// (client/sampling#error-handling).
var rejected = &wire.Error{Code: -1, Message: "User rejected sampling request"}
