package bundle_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pack makes the bundle of a whole run.
func pack(t *testing.T, s suites.Stimulus, role, name, extent string, o suites.Options) []byte {
	t.Helper()
	o.Tool, o.Target.Command = result.Tool{Name: "mcpconform", Version: "v1"}, []string{"(a " + role + ")"}
	var run *result.Run
	var trace *wire.Trace
	play := func(t *testing.T) {
		var err error
		if run, trace, err = suites.Run(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
	}
	if name == transport.NameHTTP && role == "server" {
		play(t) // the server listens at a real port
	} else {
		virtual.Test(t, func(t *testing.T) {
			<-time.After(time.Until(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))) // the revision is out
			play(t)
		})
	}
	class, ok := schema.Default().FindClass(schema.ClassID(role, name, extent), 0)
	if !ok {
		t.Fatalf("there is no class of a %s over %s", role, name)
	}
	contents := bundle.Contents{
		Run: run, Trace: trace, Class: class, Platform: bundle.Platform{OS: "linux", Arch: "amd64", Go: "go1"},
		Configuration: bundle.Configuration{Arguments: []string{"certify", role}, Role: role, Command: run.Target.Command, URL: run.Target.URL},
	}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if _, err := bundle.Write(b, contents); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bundles of the same contents differ")
	}
	return first.Bytes()
}

func faulty(t *testing.T, faults ...string) *server.Server {
	t.Helper()
	return misbehaving(t, server.Options{}, faults...)
}

// misbehaving returns a server with faults.
func misbehaving(t *testing.T, o server.Options, faults ...string) *server.Server {
	t.Helper()
	for _, id := range faults {
		f, ok := mockserver.Find(id)
		if !ok {
			t.Fatalf("there is no fault %s", id)
		}
		f.Apply(&o)
	}
	return server.New(o)
}

func overStdio(s *server.Server) suites.ServerChecks {
	return suites.ServerChecks{
		Dialer:   &transport.Stdio{Launcher: transport.Func{Name: "a server", Run: s.RunStdio}},
		Settings: check.Settings{CallTools: check.CallAll},
	}
}

func verify(raw []byte) *bundle.Verification {
	return bundle.Verify(bytes.NewReader(raw), int64(len(raw)), time.Now())
}

func reasons(v *bundle.Verification) string {
	var b strings.Builder
	for _, r := range v.Refusals {
		fmt.Fprintf(&b, "%s: %s\n", r.Where, r.Why)
	}
	return b.String()
}

// What certify writes is accepted, whatever the verdict.
func TestGenuine(t *testing.T) {
	const rule, checked = "tools.duplicate-name", "tools.unknown-code-method" // who finds it; the latter is a SHOULD
	for _, tt := range []struct {
		name   string
		bundle func(t *testing.T) []byte
		want   result.Overall
	}{
		{"server over stdio", func(t *testing.T) []byte {
			return pack(t, overStdio(faulty(t)), "server", "stdio", "core", suites.Options{})
		}, result.Conformant},
		{"a MUST broken", func(t *testing.T) []byte {
			return pack(t, overStdio(faulty(t, rule)), "server", "stdio", "core", suites.Options{})
		}, result.NotConformant},
		{"a SHOULD broken, core", func(t *testing.T) []byte {
			return pack(t, overStdio(faulty(t, checked)), "server", "stdio", "core", suites.Options{})
		}, result.Conformant},
		{"a SHOULD broken, extended", func(t *testing.T) []byte {
			return pack(t, overStdio(faulty(t, checked)), "server", "stdio", "extended", suites.Options{})
		}, result.NotConformant},
		{"server over HTTP", func(t *testing.T) []byte {
			h := faulty(t).HTTP()
			at := httptest.NewServer(h)
			t.Cleanup(func() { h.Close(); at.Close() })
			return pack(t, suites.ServerChecks{
				Dialer:   &transport.HTTP{Endpoint: transport.Endpoint{URL: at.URL + "/mcp"}},
				Settings: check.Settings{CallTools: check.CallAll},
			}, "server", "http", "core", suites.Options{})
		}, result.Conformant},
		{"client over HTTP", func(t *testing.T) []byte {
			if testing.Short() {
				t.Skip("left out with -short: the certification of a client")
			}
			return pack(t, suites.ClientScenarios{
				Network: new(memory.Network),
				Launch:  func(p client.Endpoint) (transport.Process, error) { return suites.ReferenceClient(p, 0).Launch() },
			}, "client", "http", "core", suites.Options{})
		}, result.Conformant},
		{"nothing there", func(t *testing.T) []byte {
			return pack(t, suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Command{Args: []string{"./no-such-program"}}}},
				"server", "stdio", "core", suites.Options{})
		}, result.Incomplete},
	} {
		if raceDetector && tt.want != result.Incomplete {
			continue // whole runs, which are those of other tests to the race detector
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := verify(tt.bundle(t))
			if !v.Accepted() || v.Manifest.Verdict != tt.want {
				t.Errorf("accepted: %v, verdict %s, want %s\n%s", v.Accepted(), v.Manifest.Verdict, tt.want, reasons(v))
			}
			if v.Run != nil && v.Run.Verdict != result.Incomplete && (v.Rechecked.Judged < 100 || v.Rechecked.Provoked < 50) {
				t.Errorf("little was recomputed: %+v", v.Rechecked)
			}
			valid(t, v.Manifest)
			var b strings.Builder
			if err := bundle.Describe(&b, v, "v2"); err != nil || !strings.Contains(b.String(), "version v1; this is version v2, whose catalogue of requirements is the same") {
				t.Errorf("%v: %s", err, b.String())
			}
		})
	}
}

// valid holds a manifest against its schema.
func valid(t *testing.T, m bundle.Manifest) {
	t.Helper()
	decode := func(text []byte) any {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("manifest", decode(bundle.ManifestSchema())); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("manifest").Validate(decode(text)); err != nil {
		t.Error(err)
	}
}

// forged is a bundle while it is being forged: consistently, by somebody who computes
// all digests, verdicts and renderings again.
type forged struct {
	t     *testing.T
	files map[string][]byte
	order []string
	// as it is done to the archive, behind the files.
	archive func(z *zip.Writer)
	after   func(raw []byte) []byte
}

func unpack(t *testing.T, raw []byte) *forged {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	f := &forged{t: t, files: make(map[string][]byte)}
	for _, file := range z.File {
		in, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if f.files[file.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		f.order = append(f.order, file.Name)
	}
	return f
}

func (f *forged) pack() []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range f.order {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(f.files[name])
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if f.archive != nil {
		f.archive(z)
	}
	if err := z.Close(); err != nil {
		f.t.Fatal(err)
	}
	if f.after != nil {
		return f.after(b.Bytes())
	}
	return b.Bytes()
}

// sed replaces a text that is in a file.
func (f *forged) sed(name, old, text string) {
	if !bytes.Contains(f.files[name], []byte(old)) {
		f.t.Fatalf("%s has no %q", name, old)
	}
	f.files[name] = bytes.Replace(f.files[name], []byte(old), []byte(text), 1)
}

// manifest changes the manifest.
func (f *forged) manifest(change func(m *bundle.Manifest)) {
	var m bundle.Manifest
	if err := json.Unmarshal(f.files[bundle.ManifestFile], &m); err != nil {
		f.t.Fatal(err)
	}
	change(&m)
	f.files[bundle.ManifestFile] = f.render(func(w io.Writer) error { return reporters.WriteJSON(w, m, "manifest") })
}

func (f *forged) render(write func(w io.Writer) error) []byte {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		f.t.Fatal(err)
	}
	return b.Bytes()
}

// sign computes all digests again.
func (f *forged) sign() {
	f.manifest(func(m *bundle.Manifest) {
		for i := range m.Files {
			text := f.files[m.Files[i].Name]
			sum := sha256.Sum256(text)
			m.Files[i].Size, m.Files[i].SHA256 = int64(len(text)), hex.EncodeToString(sum[:])
		}
	})
}

// results changes the results, and everything else that follows from them.
func (f *forged) results(change func(r *result.Run)) {
	run, err := reporters.ReadJSON(bytes.NewReader(f.files[bundle.ResultsFile]))
	if err != nil {
		f.t.Fatal(err)
	}
	change(run)
	f.files[bundle.ResultsFile] = f.render(func(w io.Writer) error { return reporters.JSON(w, run) })
	f.files[bundle.ChecklistFile] = f.render(func(w io.Writer) error { return reporters.Checklist(w, run) })
	f.manifest(func(m *bundle.Manifest) {
		if class, ok := schema.Default().FindClass(m.Class.ID, m.Class.Version); ok {
			m.Verdict, m.Counts = bundle.Judge(class, run)
		}
	})
	f.sign()
}

// trace changes the lines of the trace.
func (f *forged) trace(change func(lines []string) []string) {
	lines := strings.SplitAfter(string(f.files[bundle.TraceFile]), "\n")
	lines = lines[:len(lines)-1]
	f.files[bundle.TraceFile] = []byte(strings.Join(change(lines), ""))
	f.sign()
}

// The requirements that a rule and a check find broken in the forged bundle.
const (
	byRule  = "tools.name.unique"
	byCheck = "tools.error.unknown-tool-code"
)

func requirement(r *result.Run, id string) *result.Requirement {
	return &r.Requirements[slices.IndexFunc(r.Requirements, func(q result.Requirement) bool { return q.ID == id })]
}

// brokenBundle is the bundle of a server that breaks two requirements, and offers a few tools alone: it is verified
// again and again, which takes as long as its trace.
var brokenBundle = sync.OnceValue(func() func(t *testing.T) []byte {
	var raw []byte
	return func(t *testing.T) []byte {
		if raw == nil {
			few := server.Options{Catalogue: server.DefaultCatalogue(), Without: []string{"completions", "logging", "prompts", "resources"}}
			few.Catalogue.Tools = few.Catalogue.Tools[:3]
			raw = pack(t, overStdio(misbehaving(t, few, "tools.duplicate-name", "tools.unknown-code-method")), "server", "stdio", "core", suites.Options{})
		}
		return raw
	}
})

// A bundle that was forged is refused, and the refusal says what is wrong.
func TestForged(t *testing.T) {
	genuine := brokenBundle()(t)
	acquit := func(r *result.Run, id string) {
		q := requirement(r, id)
		q.Verdict, q.Findings = result.Pass, nil
		r.Verdict = result.Conformant
	}
	for i, tt := range []struct {
		name  string
		forge func(f *forged)
		says  string
	}{
		{"verdict flipped", func(f *forged) {
			f.results(func(r *result.Run) { acquit(r, byRule) })
		}, "the trace shows a finding"},
		{"verdict flipped, findings kept", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, byCheck).Verdict = result.Pass })
		}, "the verdict is said to be pass; warn follows"},
		{"verdict of the run flipped", func(f *forged) {
			f.results(func(r *result.Run) { r.Verdict = result.Conformant })
		}, "the verdict is said to be conformant"},
		{"verdict of the manifest flipped", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Verdict = result.Conformant })
		}, "manifest.json: says \"conformant\"; not-conformant follows"},
		{"counts of the manifest changed", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Counts.Passed++ })
		}, "other counts"},
		{"made to not apply", func(f *forged) {
			f.results(func(r *result.Run) {
				acquit(r, byRule)
				q := requirement(r, byRule)
				q.Verdict, q.Exercised, q.Reason = result.Skip, 0, "the server does not declare tools"
			})
		}, "the verdict is said to be skip"},
		{"finding removed", func(f *forged) {
			f.results(func(r *result.Run) { q := requirement(r, byRule); q.Findings = q.Findings[:len(q.Findings)-1] })
		}, "that the results leave out"},
		{"finding made up", func(f *forged) {
			f.results(func(r *result.Run) {
				q := requirement(r, "tools.error.unknown-tool-protocol-error")
				q.Verdict, q.Findings = result.Warn, []result.Finding{{Check: "rule: tool calls", Message: "made up"}}
			})
		}, "the trace does not show what"},
		{"dispute made up", func(f *forged) {
			f.results(func(r *result.Run) {
				requirement(r, byRule).Disputed = &result.Dispute{ID: "x", Title: "x", Threads: []result.Thread{}}
				r.Verdict = result.Conformant
			})
		}, "does not follow from the findings"},
		{"exercise made up", func(f *forged) {
			f.results(func(r *result.Run) {
				for i := range r.Requirements {
					q := &r.Requirements[i]
					rules := !slices.ContainsFunc(q.Checks, func(c string) bool { return !strings.HasPrefix(c, "rule: ") })
					if q.Observable && q.Verdict == result.Skip && len(q.Checks) > 0 && rules {
						q.Verdict, q.Exercised, q.Reason = result.Pass, 3, ""
						return
					}
				}
				f.t.Fatal("no requirement fits")
			})
		}, "the trace never shows it exercised"},
		{"exercise left out", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, "base.json.well-formed").Exercised = 1 })
		}, "and the results 1 times"},
		{"requirement weakened", func(f *forged) {
			f.results(func(r *result.Run) {
				q := requirement(r, byRule)
				q.Level, q.Verdict, r.Verdict = "SHOULD", result.Warn, result.Conformant
			})
		}, "differ from the catalogue"},
		{"requirement dropped", func(f *forged) {
			f.results(func(r *result.Run) {
				r.Requirements = slices.DeleteFunc(r.Requirements, func(q result.Requirement) bool { return q.ID == byRule })
				r.Verdict = result.Conformant
			})
		}, "the class demands the requirement"},
		{"unobservable requirement dropped", func(f *forged) {
			f.results(func(r *result.Run) {
				r.Requirements = slices.DeleteFunc(r.Requirements, func(q result.Requirement) bool { return !q.Observable })
			})
		}, "the results lack the requirement"},
		{"requirement made up", func(f *forged) {
			f.results(func(r *result.Run) {
				q := *requirement(r, "base.json.well-formed")
				q.ID = "base.made-up"
				r.Requirements = append(r.Requirements, q)
			})
		}, "the catalogue has no such requirement"},
		{"requirements out of order", func(f *forged) {
			f.results(func(r *result.Run) { r.Requirements[0], r.Requirements[1] = r.Requirements[1], r.Requirements[0] })
		}, "not in the order of the catalogue"},
		{"waiver", func(f *forged) {
			f.results(func(r *result.Run) {
				requirement(r, byRule).Expected = "known"
				r.ExpectedFailures = []result.ExpectedFailure{{ID: byRule, Reason: "known", Status: "failed"}}
				r.Verdict = result.Conformant
			})
		}, "waives failures"},
		{"waiver hidden at the requirement", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, byRule).Expected = "known"; r.Verdict = result.Conformant })
		}, "the failure is waived"},
		{"waiver hidden in a member that readers ignore", func(f *forged) {
			f.sed(bundle.ResultsFile, `"verdict": "fail",`, `"waived": true, "verdict": "fail",`)
			f.sign()
		}, "results.json: is not as mcpconform writes it"},
		{"verdict given twice", func(f *forged) {
			f.sed(bundle.ResultsFile, `"verdict": "not-conformant",`, `"verdict": "conformant", "verdict": "not-conformant",`)
			f.sign()
		}, "results.json: is not as mcpconform writes it"},
		{"a selection", func(f *forged) { f.results(func(r *result.Run) { r.Partial = true }) }, "about a selection"},
		{"a selection hidden", func(f *forged) {
			f.results(func(r *result.Run) {
				r.Requirements = slices.DeleteFunc(r.Requirements, func(q result.Requirement) bool { return strings.HasPrefix(q.ID, "tools.") })
				r.Verdict = result.Conformant
			})
		}, "which the results lack"},
		{"a shard", func(f *forged) {
			f.results(func(r *result.Run) { r.Shard = &result.Shard{Index: 1, Of: 2, Plan: "x"} })
		}, "is a shard"},
		{"strict", func(f *forged) { f.results(func(r *result.Run) { r.Strict = true }) }, "strict run"},
		{"class of another role", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) {
				c, _ := schema.Default().FindClass("client/stdio/core", 0)
				m.Class = bundle.Class{ID: c.ID, Version: c.Version, SHA256: c.SHA256}
			})
		}, "a server over stdio belongs to"},
		{"class under another name", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Class.ID = "server/stdio/extended" })
		}, "has the SHA-256"},
		{"class that does not exist", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Class.ID = "server/stdio/easy" })
		}, "which does not exist"},
		{"version of the class that does not exist", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Class.Version = 99 })
		}, "which does not exist"},
		{"digest of the class", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Class.SHA256 = strings.Repeat("0", 64) })
		}, "has the SHA-256"},
		{"checklist edited", func(f *forged) {
			f.sed(bundle.ChecklistFile, "**fail**", "pass")
		}, "checklist.md: has"},
		{"checklist edited, with its digest", func(f *forged) {
			f.sed(bundle.ChecklistFile, "**fail**", "pass")
			f.sign()
		}, "checklist.md: is not the checklist"},
		{"how to repeat edited", func(f *forged) {
			f.sed(bundle.ReproduceFile, "certify server", "certify servers")
			f.sign()
		}, "reproduce.md: is not what follows"},
		{"other command", func(f *forged) {
			f.sed(bundle.ConfigurationFile, "(a server)", "(another server)")
			f.sign()
		}, "has the command"},
		{"other tool", func(f *forged) {
			f.manifest(func(m *bundle.Manifest) { m.Tool.Version = "v2" })
		}, "was made by mcpconform v2, and results.json by mcpconform v1"},
		{"other target", func(f *forged) {
			f.results(func(r *result.Run) { r.Target.Name = "a better server" })
		}, "nobody introduces itself so"},
		{"other capabilities", func(f *forged) {
			f.results(func(r *result.Run) { r.Target.Capabilities = json.RawMessage(`{}`) })
		}, "nobody introduces itself so"},
		{"tool left out of the offer", func(f *forged) {
			f.results(func(r *result.Run) { r.Offer.Tools = r.Offer.Tools[1:] })
		}, "the offer of the server is said to be other"},
		{"tool of the offer made up", func(f *forged) {
			f.results(func(r *result.Run) {
				r.Offer.Tools = append(r.Offer.Tools, result.OfferedTool{Name: "zzz", InputSchema: json.RawMessage(`{"type":"object"}`)})
			})
		}, "the offer of the server is said to be other"},
		{"schema of the offer widened", func(f *forged) {
			f.results(func(r *result.Run) { r.Offer.Tools[0].InputSchema = json.RawMessage(`{"type":"object"}`) })
		}, "the offer of the server is said to be other"},
		{"offer said to be unread", func(f *forged) {
			f.results(func(r *result.Run) { r.Offer.Prompts, r.Offer.Incomplete = nil, []string{result.OfferPrompts} })
		}, "the offer of the server is said to be other"},
		{"offer dropped", func(f *forged) {
			f.results(func(r *result.Run) { r.Offer = nil })
		}, "is said to be other than what it listed in the first session of the trace: \"null\""},
		{"in the future", func(f *forged) {
			f.results(func(r *result.Run) { r.Started = time.Now().Add(48 * time.Hour).UTC() })
		}, "in the future"},
		{"before the revision", func(f *forged) {
			f.results(func(r *result.Run) { r.Started = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) })
		}, "before the revision was published"},
		{"too short", func(f *forged) { f.results(func(r *result.Run) { r.Seconds = 0.0001 }) }, "its last message is at"},
		{"too long", func(f *forged) { f.results(func(r *result.Run) { r.Seconds = 1e6 }) }, "nothing happened after"},
		{"evidence of another connection", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, byCheck).Findings[0].Evidence[0].Connection = "c1" })
		}, "otherwise than the trace has it"},
		{"evidence of no connection", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, byCheck).Findings[0].Evidence[0].Connection = "c9999" })
		}, "which the trace does not have"},
		{"evidence edited", func(f *forged) {
			f.results(func(r *result.Run) { requirement(r, byCheck).Findings[0].Evidence[0].Text += " " })
		}, "otherwise than the trace has it"},
		{"trace edited", func(f *forged) { f.sed(bundle.TraceFile, `"t":`, `"t": `) }, "trace.jsonl: has"},
		{"line of the trace edited", func(f *forged) {
			f.trace(func(lines []string) []string {
				for i, l := range lines {
					if strings.Contains(l, `"from":"server"`) && strings.Contains(l, `\"tools\":[`) {
						lines[i] = strings.Replace(l, `\"name\":\"`, `\"name\":7,\"was\":\"`, 1)
					}
				}
				return lines
			})
		}, "the trace shows a finding"},
		{"line of the trace removed", func(f *forged) {
			f.trace(func(lines []string) []string { return slices.Delete(lines, len(lines)/2, len(lines)/2+1) })
		}, "a line is missing"},
		{"all that was wrong removed from the trace", func(f *forged) {
			f.trace(func(lines []string) []string {
				for i := range lines {
					lines[i] = strings.ReplaceAll(lines[i], `tools/list`, `tools/lost`)
				}
				return lines
			})
		}, "the trace does not show what"},
		{"line added to the trace", func(f *forged) {
			f.trace(func(lines []string) []string {
				var last struct {
					Conn string  `json:"conn"`
					Seq  int     `json:"seq"`
					T    float64 `json:"t"`
				}
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
					f.t.Fatal(err)
				}
				text, err := json.Marshal(last.T)
				if err != nil {
					f.t.Fatal(err)
				}
				return append(lines, fmt.Sprintf(`{"conn":%q,"seq":%d,"t":%s,"kind":"message","from":"server","stream":"stdout","raw":"{}"}`+"\n", last.Conn, last.Seq+1, text))
			})
		}, "the trace shows a finding"},
		{"lines of the trace swapped", func(f *forged) {
			f.trace(func(lines []string) []string { lines[3], lines[4] = lines[4], lines[3]; return lines })
		}, "out of place"},
		{"trace is none", func(f *forged) { f.files[bundle.TraceFile] = []byte("nonsense\n"); f.sign() }, "is not a trace: read trace: line 1"},
		{"member of the manifest", func(f *forged) { f.sed(bundle.ManifestFile, "{", `{"note": "trust me",`) }, "unknown field"},
		{"format of the manifest", func(f *forged) { f.manifest(func(m *bundle.Manifest) { m.Format = 2 }) }, "this version reads format 1"},
		{"file of the manifest", func(f *forged) { f.manifest(func(m *bundle.Manifest) { m.Files = m.Files[1:] }) }, "lists 4 files"},
		{"size in the manifest", func(f *forged) { f.manifest(func(m *bundle.Manifest) { m.Files[0].Size++ }) }, "bytes; the manifest says"},
		{"extra file", func(f *forged) { f.order, f.files["readme.md"] = append(f.order, "readme.md"), nil }, "does not belong there"},
		{"file outside", func(f *forged) {
			f.order, f.files["../results.json"] = append(f.order, "../results.json"), nil
		}, `"../results.json" that does not belong there`},
		{"file twice", func(f *forged) { f.order = append(f.order, bundle.ResultsFile) }, "twice"},
		{"file missing", func(f *forged) { f.order = f.order[1:] }, "lacks the file results.json"},
		{"a link", func(f *forged) {
			f.order = f.order[1:]
			f.archive = func(z *zip.Writer) {
				h := &zip.FileHeader{Name: bundle.ResultsFile}
				h.SetMode(0o777 | 1<<27) // a symbolic link
				_, _ = z.CreateHeader(h)
			}
		}, "not a regular file"},
		{"more than it may have", func(f *forged) {
			f.order = f.order[1:]
			f.archive = func(z *zip.Writer) {
				_, _ = z.CreateRaw(&zip.FileHeader{Name: bundle.ResultsFile, Method: zip.Deflate, UncompressedSize64: 1 << 40})
			}
		}, "results.json: has 1099511627776 bytes, more than"},
		{"more than it says", func(f *forged) {
			f.order = f.order[1:]
			f.archive = func(z *zip.Writer) {
				w, err := z.CreateRaw(&zip.FileHeader{Name: bundle.ResultsFile, Method: zip.Store, CompressedSize64: 100, UncompressedSize64: 10})
				if err == nil {
					_, _ = w.Write(make([]byte, 100))
				}
			}
		}, "results.json: "},
		{"a large directory", func(f *forged) {
			f.archive = func(z *zip.Writer) {
				for i := range 1000 {
					_, _ = z.Create(fmt.Sprintf("file-%d", i))
				}
			}
		}, "has a directory of"},
		{"something behind", func(f *forged) { f.after = func(raw []byte) []byte { return append(raw, "more"...) } }, "something follows"},
		{"something in front", func(f *forged) {
			f.after = func(raw []byte) []byte { return append([]byte("more"), raw...) }
		}, "has a directory of"},
		{"cut short", func(f *forged) { f.after = func(raw []byte) []byte { return raw[:len(raw)/2] } }, "not a zip archive"},
		{"empty", func(f *forged) { f.after = func([]byte) []byte { return nil } }, "not a zip archive"},
	} {
		if raceDetector && i%24 != 0 {
			continue // the others are the same to the race detector
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := unpack(t, genuine)
			tt.forge(f)
			v := verify(f.pack())
			if said := reasons(v); v.Accepted() || !strings.Contains(said, tt.says) {
				t.Errorf("accepted: %v; want a refusal with %q:\n%s", v.Accepted(), tt.says, said)
			}
			var b strings.Builder
			if err := bundle.Describe(&b, v, "v1"); err != nil || !strings.Contains(b.String(), "REFUSED") {
				t.Errorf("%v: %s", err, b.String())
			}
		})
	}
}

// What only a check knew cannot be recomputed: who removes its finding from everything
// is not found out. The documentation says so, and points to signatures.
func TestForgedUnseen(t *testing.T) {
	f := unpack(t, brokenBundle()(t))
	f.results(func(r *result.Run) {
		q := requirement(r, byCheck)
		q.Verdict, q.Findings = result.Pass, nil
	})
	if v := verify(f.pack()); !v.Accepted() {
		t.Errorf("it is refused; the documentation is too modest:\n%s", reasons(v))
	}
}

// A statement is about one archive, and says what its manifest says.
func TestAttestation(t *testing.T) {
	raw := brokenBundle()(t)
	v := verify(raw)
	attest := func(archive []byte, change func(m *bundle.Manifest)) string {
		m := v.Manifest
		change(&m)
		var b strings.Builder
		if err := bundle.Attest(&b, v.Run, m, "bundle.zip", archive); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	same := func(*bundle.Manifest) {}
	for _, tt := range []struct {
		name, statement, says string
	}{
		{"about this bundle", attest(raw, same), ""},
		{"about another bundle", attest(raw[1:], same), "none of its subjects has the SHA-256"},
		{"with another verdict", attest(raw, func(m *bundle.Manifest) { m.Verdict = result.Conformant }), `says "WARNED"; the verdict of the manifest is not-conformant`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &bundle.Verification{Manifest: v.Manifest}
			if err := v.Attestation(strings.NewReader(tt.statement), bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
			if said := reasons(v); v.Accepted() != (tt.says == "") || !strings.Contains(said, tt.says) {
				t.Errorf("accepted: %v; want a refusal with %q: %s", v.Accepted(), tt.says, said)
			}
		})
	}
	if err := v.Attestation(strings.NewReader("{}"), bytes.NewReader(raw)); err == nil {
		t.Error("an empty object is taken for a statement")
	}
}

// A bundle of a version with other requirements is neither accepted nor refused.
func TestOtherCatalogue(t *testing.T) {
	f := unpack(t, brokenBundle()(t))
	f.manifest(func(m *bundle.Manifest) { m.CatalogueSHA256 = strings.Repeat("0", 64) })
	v := verify(f.pack())
	if v.Accepted() || !v.OtherCatalogue || len(v.Refusals) > 0 {
		t.Errorf("accepted: %v, of another catalogue: %v\n%s", v.Accepted(), v.OtherCatalogue, reasons(v))
	}
	var b strings.Builder
	if err := bundle.Describe(&b, v, "v2"); err != nil || !strings.Contains(b.String(), "NOT VERIFIED") || !strings.Contains(b.String(), "version v1; this is version v2, whose catalogue of requirements is another") {
		t.Errorf("%v: %s", err, b.String())
	}
}
