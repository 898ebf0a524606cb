package suites_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestSelectionValidate(t *testing.T) {
	for _, tt := range []struct {
		name      string
		sel, skip []string
		filter    string
		party     wire.Party
		want      string // part of the error, or "" for none
	}{
		{"nothing named", nil, nil, "", wire.Server, ""},
		{"every kind of pattern", []string{"ping.no-params", "tools.*", "basic/utilities", "should", "MUST NOT", "resources"}, []string{"MAY"}, "", wire.Server, ""},
		{"unknown id", []string{"ping.no-param"}, nil, "", wire.Server, "the nearest ids are ping.no-params"},
		{"unknown page", []string{"server/toools"}, nil, "", wire.Server, "not a requirement id, page or level"},
		{"unknown level", nil, []string{"CAN"}, "", wire.Server, "not a requirement id, page or level"},
		{"glob without match", nil, []string{"tols.*"}, "", wire.Server, `"tols.*" matches no requirement id`},
		{"not a glob", []string{"tools.["}, nil, "", wire.Server, "is not a pattern"},
		{"empty", []string{""}, nil, "", wire.Server, "not a requirement id, page or level"},
		{"of the other party", []string{"auth.client"}, nil, "", wire.Server, "no requirement on a server is left"},
		{"all skipped", []string{"ping"}, []string{"basic/utilities/ping"}, "", wire.Client, "no requirement on a client is left"},
		{"label filter", nil, nil, "level: containsAny {MUST}", wire.Server, ""},
		{"broken label filter", nil, nil, "level: containsAny {", wire.Server, `"level: containsAny {" is not a label filter: Missing closing '}'`},
		{"label filter that leaves nothing", nil, nil, "id: containsAny {none}", wire.Server, `label filter: "id: containsAny {none}"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := suites.Selection{Select: tt.sel, Skip: tt.skip, LabelFilter: tt.filter}.Validate(schema.Default(), tt.party)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A requirement that only rules judge is exercised by the checks of other requirements, selected or not.
func TestSelectionOfRules(t *testing.T) {
	for _, tt := range []struct {
		id   string
		skip []string
		want result.Verdict
	}{
		{"progress.value-increases", nil, result.Pass},
		{"tools.name.unique", nil, result.Pass},
		{"schema.complete-result", []string{"roots"}, result.Pass},
	} {
		t.Run(tt.id+" without "+strings.Join(tt.skip, ","), inVirtualTime(func(t *testing.T) {
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(serverOptions()).RunStdio}}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{Selection: suites.Selection{Select: []string{tt.id}, Skip: tt.skip}})
			if err != nil {
				t.Fatal(err)
			}
			if len(run.Requirements) != 1 || run.Requirements[0].Verdict != tt.want {
				t.Errorf("got %+v, want %s", run.Requirements, tt.want)
			}
		}))
	}
}

// An observer of a run hears only of the selected requirements.
func TestSelectionIsWatched(t *testing.T) { virtual.Test(t, testSelectionIsWatched) }

func testSelectionIsWatched(t *testing.T) {
	o := serverOptions()
	fault, _ := mockserver.Find("tools.listed-but-unknown")
	fault.Apply(&o)
	for _, tt := range []struct {
		id    string
		wants bool
	}{
		{"schema.list-tools-result", false},
		{"tools.list.callable", true},
	} {
		watch := new(watcher)
		_, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "mock server", Run: server.New(o).RunStdio}}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{Selection: suites.Selection{Select: []string{tt.id}}, Progress: watch})
		if err != nil {
			t.Fatal(err)
		}
		if tt.wants != (len(watch.failed) > 0) {
			t.Errorf("with %s selected, these fail: %q", tt.id, watch.failed)
		}
	}
}

type watcher struct {
	mu     sync.Mutex
	failed []string
}

func (w *watcher) Start(int) {}

func (w *watcher) Stop() {}

func (w *watcher) Done(name string, verdict result.Verdict, _ bool, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if verdict == result.Fail || verdict == result.Warn {
		w.failed = append(w.failed, name+": "+message)
	}
}
