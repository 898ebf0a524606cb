package suites_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/outputs"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

const authPage = "basic/authorization"

// found returns the verdicts of a run that are findings, by requirement.
func found(t *testing.T, run *result.Run) map[string]result.Verdict {
	t.Helper()
	all := make(map[string]result.Verdict)
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
			all[q.ID] = q.Verdict
			t.Logf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
		}
	}
	for _, h := range run.Harness {
		t.Errorf("a message of mcpconform is at fault: %s %v", h.Message, h.Evidence)
	}
	return all
}

// judgedOn returns the observable requirements of the page with a verdict.
func judgedOn(run *result.Run, v result.Verdict) []string {
	var ids []string
	for _, q := range run.Requirements {
		if q.Page == authPage && q.Verdict == v && q.Observable {
			ids = append(ids, q.ID)
		}
	}
	return ids
}

// TestProtectedServer runs the suite against the reference server behind access
// tokens, with a good one: nothing is found.
func TestProtectedServer(t *testing.T) {
	brief.WholeRuns(t)
	for over, untried := range map[string][]string{
		transport.NameHTTP: nil,
		transport.NameSSE:  {"auth.server.insufficient-scope-403"},
	} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			o := serverOptions()
			hooks.Protected(&o)
			run := conducted(t, over, o)
			if all := found(t, run); len(all) > 0 || run.Verdict != result.Conformant {
				t.Errorf("the verdict is %s: %v %s", run.Verdict, all, run.Reason)
			}
			if diff := cmp.Diff(untried, judgedOn(run, result.Inconclusive)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// bare runs the suite against a server without any token.
func bare(t *testing.T, o server.Options, a check.Authorization) *result.Run {
	t.Helper()
	return bareAt(t, a, func(t *testing.T) transport.Dialer {
		dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		dialer.(*transport.HTTP).Header = nil
		return dialer
	})
}

// closed returns how to reach a server that refuses everybody with a challenge, with an
// error code in it for those that have a token.
func closed(challenge string) func(t *testing.T) transport.Dialer {
	return func(t *testing.T) transport.Dialer {
		return &transport.HTTP{Endpoint: below(listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			challenge := challenge
			if r.Header.Get("Authorization") != "" {
				challenge += `, error="invalid_token"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		})), server.PathMCP)}
	}
}

func bareAt(t *testing.T, a check.Authorization, open func(*testing.T) transport.Dialer) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		var err error
		run, _, err = suites.Run(t.Context(), suites.ServerChecks{Dialer: open(t), Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles, Authorization: a}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
	})
	return run
}

// Without a token the run says what is missing, and judges what it can.
func TestProtectedServerWithoutToken(t *testing.T) {
	o := serverOptions()
	hooks.Protected(&o)
	run := bare(t, o, check.Authorization{Expired: mockserver.ExpiredToken})
	if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "give an access token") {
		t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
	}
	if all := found(t, run); len(all) > 0 {
		t.Error(all)
	}
	for _, id := range []string{
		"auth.server.missing-token-401", "auth.server.www-authenticate", "auth.server.www-authenticate-metadata-url",
		"auth.server.resource-metadata", "auth.server.invalid-token-401", "auth.server.expired-token-401", "auth.server.malformed-400",
	} {
		if !slices.Contains(judgedOn(run, result.Pass), id) {
			t.Errorf("%s has not passed", id)
		}
	}
	for _, q := range run.Requirements {
		if q.Page == "server/tools" && q.Verdict != result.Inconclusive && q.Verdict != result.Skip {
			t.Errorf("%s is %s", q.ID, q.Verdict)
		}
	}
}

// An open server is not judged by the page, unless it is said to be protected.
func TestOpenServer(t *testing.T) {
	brief.WholeRuns(t)
	run := bare(t, serverOptions(), check.Authorization{})
	for _, v := range []result.Verdict{result.Pass, result.Inconclusive, result.Fail, result.Warn} {
		if ids := judgedOn(run, v); len(ids) > 0 {
			t.Errorf("%s: %s", v, ids)
		}
	}
	run = bare(t, serverOptions(), check.Authorization{Protected: true})
	if !slices.Contains(judgedOn(run, result.Fail), "auth.server.missing-token-401") {
		t.Error("that the server is open is not found")
	}
}

// A gateway that wants credentials of its own kind departs from the page in
// this, and is not blamed for what lies behind it.
func TestForeignGateway(t *testing.T) {
	run := bareAt(t, check.Authorization{}, closed(`Basic realm="staff"`))
	want := map[string]result.Verdict{
		"auth.http-conform":             result.Warn,
		"auth.server.resource-metadata": result.Fail, "auth.server.validation-failure-challenge": result.Fail,
	}
	if diff := cmp.Diff(want, found(t, run)); diff != "" {
		t.Error(diff)
	}
}

// A server that wants a token for some methods only is judged by the open methods. The others are left open.
func TestPartlyProtectedServer(t *testing.T) {
	brief.WholeRuns(t)
	o := serverOptions()
	hooks.Protected(&o)
	o.Behaviour.HTTP.Reply = func(r *server.Reply) {
		r.Pass = r.Situation == server.Unauthorized && r.Request.Header.Get("Authorization") == "" && !hooks.Calls(r.Request)
	}
	run := bare(t, o, check.Authorization{Methods: []string{"tools/call"}})
	if all := found(t, run); len(all) > 0 {
		t.Error(all)
	}
	if !slices.Contains(judgedOn(run, result.Pass), "auth.server.missing-token-401") {
		t.Error("the refusal of tools/call has not counted")
	}
}

// With the token, only the methods that the user names are expected to need one, and they
// are sent with params that fit.
func TestPartlyProtectedServerWithToken(t *testing.T) {
	brief.WholeRuns(t)
	o := serverOptions()
	hooks.Protected(&o)
	o.Behaviour.HTTP.Reply = func(r *server.Reply) {
		r.Pass = r.Situation == server.Unauthorized && !hooks.Calls(r.Request)
	}
	run := bareAt(t, check.Authorization{Methods: []string{"tools/call"}}, func(t *testing.T) transport.Dialer {
		dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		return dialer
	})
	if all := found(t, run); len(all) > 0 {
		t.Error(all)
	}
	for _, id := range []string{"auth.server.missing-token-401", "auth.server.validates-first", "auth.server.token-validated"} {
		if !slices.Contains(judgedOn(run, result.Pass), id) {
			t.Errorf("%s has not passed", id)
		}
	}
}

// No token that serves to be accepted or refused is shown.
func TestNoTokenIsShown(t *testing.T) { virtual.Test(t, testNoTokenIsShown) }

func testNoTokenIsShown(t *testing.T) {
	o := serverOptions()
	hooks.Protected(&o)
	dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	at := dialer.(*transport.HTTP)
	at.Redactor = transport.NewRedactor(at.Header, at.URL)
	at.Redactor.Add(authorization.Tokens()...)
	run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: at, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles, Authorization: authorization}}, suites.Options{Redactor: at.Redactor, Selection: suites.Selection{Select: []string{authPage}}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	found(t, run)
	all, err := outputs.All(run, trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range append(authorization.Tokens(), hooks.GoodToken, hooks.GoodToken[:20]) {
		for name, text := range all {
			if strings.Contains(text, token) {
				t.Errorf("%s is shown: %s", token, name)
			}
		}
	}
}

// Metadata on a host that does not answer may be out of reach for mcpconform alone, and where a
// server must not lead is not gone to: neither is held against anybody.
func TestMetadataOutOfReach(t *testing.T) {
	for named, says := range map[string]string{
		"https://metadata.mcpconform.invalid/resource":                     "no such host",
		"http://169.254.169.254/latest/meta-data/iam/security-credentials": "is a link-local address",
		"file:///etc/passwd": "is not the URL of a document",
		"unix:///var/run/docker.sock?path=/containers/json": "is not the URL of a document",
		"/round": "is answered with HTTP status 307",
		"/away":  "is a link-local address",
	} {
		t.Run(named, func(t *testing.T) {
			leads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := named
				if strings.HasPrefix(at, "/") {
					at = "http://" + r.Host + at
				}
				challenge := `Bearer resource_metadata="` + at + `"`
				if r.Header.Get("Authorization") != "" {
					challenge += `, error="invalid_token"`
				}
				w.Header().Set("WWW-Authenticate", challenge)
				switch r.URL.Path {
				case "/round":
					http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
				case "/away":
					http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
				default:
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			run := bareAt(t, check.Authorization{}, func(t *testing.T) transport.Dialer {
				return &transport.HTTP{Endpoint: below(listen(t, leads), server.PathMCP)}
			})
			said := ""
			for _, q := range run.Requirements {
				said += q.Reason + "\n" + killmatrix.Why(q) + "\n"
			}
			if !strings.Contains(said, says) {
				t.Errorf("nothing says %q", says)
			}
			all := found(t, run)
			delete(all, "auth.server.www-authenticate-metadata-url") // which a file is not
			if run.Verdict == result.Conformant || named != "/round" && len(all) > 0 {
				t.Errorf("%s: %v", run.Verdict, all)
			}
		})
	}
}
