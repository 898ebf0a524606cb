// Package result holds what a run found: one entry a requirement, with a
// verdict in the terms of ISO/IEC 9646 and the wire events that prove it. It is
// the contract between the engine, which fills it, and the reporters, which
// render it. Its JSON form is versioned; docs/results.md describes it.
//
// Fields that are tagged redact:"-" hold what the catalogue or mcpconform itself
// states. Secrets are taken out of all others.
package result

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/schema"
)

// Format is the version of the JSON form. It changes only when a reader of the
// previous form would misread the new one.
const Format = 1

// Verdict of one requirement.
type Verdict string

// The verdicts, from best to worst for a certification.
const (
	Pass         Verdict = "pass"         // exercised, and never violated
	Skip         Verdict = "skip"         // does not apply to this target or run
	Inconclusive Verdict = "inconclusive" // applies, but nothing exercised it
	Warn         Verdict = "warn"         // a SHOULD was broken
	Fail         Verdict = "fail"         // a MUST was broken
	Error        Verdict = "error"        // the harness could not tell
)

// Unexercised is the kind of reason why a requirement is inconclusive.
type Unexercised string

// The kinds of reasons.
const (
	NeverDone   Unexercised = "never-done"   // the target did nothing that the requirement is about
	NotProvoked Unexercised = "not-provoked" // a check was to bring it about and could not
	NotRun      Unexercised = "not-run"      // what tries it was not run, or does not exist
)

// Helps precedes what a user can configure, in brackets at the end of a reason.
const Helps = "this helps: "

// Overall verdict of a run.
type Overall string

// The overall verdicts.
const (
	Conformant    Overall = "conformant"
	NotConformant Overall = "not-conformant"
	Incomplete    Overall = "incomplete" // nothing wrong was found, but too little was seen
)

// ExitCode is the exit code of a command that ends with the verdict.
func (o Overall) ExitCode() int {
	switch o {
	case NotConformant:
		return 1
	case Incomplete:
		return 3
	}
	return 0
}

// Budget is how much a run tries: its mode.
type Budget uint8

// The budgets.
const (
	Default  Budget = iota // the members of families at which implementations are known to break, and sequences
	Quick                  // each requirement once, by the plainest check or scenario that tries it
	Thorough               // all members, and longer sequences
)

func (b Budget) String() string { return [...]string{"default", "quick", "thorough"}[b] }

// QuickOnly is why a requirement is untested that a quick run leaves to longer ones.
const QuickOnly = "only a run without --quick tries this"

// Run is one run against one target: the content of results.json.
type Run struct {
	Format    int       `json:"format"`
	Tool      Tool      `json:"tool"`
	Revision  string    `json:"revision" redact:"-"`
	Role      string    `json:"role" redact:"-"`      // role of the target: "server" or "client"
	Transport string    `json:"transport" redact:"-"` // "stdio", "http", "sse" or "custom"
	Target    Target    `json:"target"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"`
	Verdict   Overall   `json:"verdict" redact:"-"`
	// Strict says that a broken SHOULD made the run not conformant.
	Strict bool `json:"strict,omitempty"`
	// Seed chose the members of large families of stimuli, and the order in which the target was asked. It is 0 by
	// default.
	Seed uint64 `json:"seed"`
	// Quick and Thorough tell the Budget. Neither is set by default.
	Quick    bool `json:"quick,omitempty"`
	Thorough bool `json:"thorough,omitempty"`
	// Recorded says that what others had recorded was judged: nothing was sent, and nothing chosen.
	Recorded bool `json:"recorded,omitempty"`
	// Partial says that the user selected a part of the requirements, or of what
	// provokes the target: the verdict is about that part.
	Partial bool `json:"partial,omitempty"`
	// Shard says which part of a run that was split this is; nil for a whole run.
	Shard *Shard `json:"shard,omitempty"`
	// Reason says in one sentence why the run is incomplete.
	Reason       string        `json:"reason,omitempty"`
	Requirements []Requirement `json:"requirements"`
	// Harness lists violations in messages of mcpconform itself that no check
	// declared as deliberate. They are bugs of mcpconform, never of the target.
	Harness []Finding `json:"harness,omitempty"`
	// Notes are observations that no verdict depends on.
	Notes []string `json:"notes,omitempty"`
	// Uncalled lists tools of a server that were never called because that was not allowed.
	Uncalled []Uncalled `json:"uncalled,omitempty"`
	// Offer is what a server offered; nil for clients, recordings and older results.
	Offer *Offer `json:"offer,omitempty"`
	// Login tells how the run failed to obtain an access token; nil if it did not try, or has one.
	Login *Login `json:"login,omitempty"`
	// ExpectedFailures reports what became of each entry of the expected-failures file.
	ExpectedFailures []ExpectedFailure `json:"expectedFailures,omitempty"`
	// Against compares with an earlier run, if the user asked for that. It belongs to a
	// report, not to the results.
	Against *Comparison `json:"-"`
}

// Shard is a part of a run that was split by its checks or scenarios. The rules judge
// what the part has seen. All parts together make the whole: suites.Merge.
type Shard struct {
	Index int `json:"index"` // from 1
	Of    int `json:"of"`
	// Plan is a digest of the names of all checks or scenarios that were split.
	Plan string `json:"plan" redact:"-"`
	// Partial says that the user selected a part of the whole.
	Partial bool `json:"partial,omitempty"`
	// Elsewhere lists the requirements that only other shards try, of those about which
	// nothing is known here.
	Elsewhere []string `json:"elsewhere,omitempty" redact:"-"`
	// Unused lists the capabilities that the target declares and nothing here used.
	Unused []string `json:"unused,omitempty" redact:"-"`
	// Cut says why the shard was not carried out to its end.
	Cut string `json:"cut,omitempty"`
}

// Tool that made the run.
type Tool struct {
	Name    string `json:"name" redact:"-"`
	Version string `json:"version" redact:"-"`
}

// Target of a run, as it was given and as it introduced itself.
type Target struct {
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"` // secrets redacted
	// Name, Title and Version are the target's own serverInfo or clientInfo.
	Name    string `json:"name,omitempty"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
	// ProtocolVersion that the target answered to a request for the run's revision.
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	// SDK is the SDK on which the target is built, if that was recognised.
	SDK *SDK `json:"sdk,omitempty"`
}

// SDK is an SDK that was recognised.
type SDK struct {
	Name    string `json:"name" redact:"-"`
	Version string `json:"version,omitempty"` // "" if it is not known
	// Evidence says by what it was recognised.
	Evidence string `json:"evidence"`
}

// SDKFault is a fault of the target's SDK that causes the findings of a requirement.
type SDKFault struct {
	ID       string `json:"id"`
	Versions string `json:"versions"` // those that have it, in words
	// Mended is the first version without it, "" if there is none yet.
	Mended string `json:"mended,omitempty"`
	// Thread is the address of a public discussion, and Says what stands there.
	Thread string `json:"thread"`
	Says   string `json:"says"`
	// Advice says what a user of the SDK can do.
	Advice string `json:"advice"`
}

// Requirement is one requirement of the revision with its verdict. The first
// members repeat the catalogue's entry, so that a report stands alone.
type Requirement struct {
	ID    string `json:"id" redact:"-"`
	Level string `json:"level" redact:"-"` // MUST, MUST NOT, SHOULD, SHOULD NOT or MAY
	// Basis is what in the specification it rests on: keyword, schema, standard,
	// statement, example or implied. It is empty for what a script of the user states.
	Basis string `json:"basis,omitempty" redact:"-"`
	// Standard is the document and section if Basis is standard.
	Standard string `json:"standard,omitempty" redact:"-"`
	Party    string `json:"party" redact:"-"` // server, client, both, host or authorization-server
	Page     string `json:"page" redact:"-"`  // path under the revision's folder, no extension
	Anchor   string `json:"anchor" redact:"-"`
	// Lead and Text find the sentence on the page, as [schema.Source] has them.
	Lead    string `json:"lead,omitempty" redact:"-"`
	Text    string `json:"text,omitempty" redact:"-"`
	Summary string `json:"summary" redact:"-"`
	// Observable is false for a requirement of which nothing is observed; its verdict
	// is then skip, its reason says why, and Unobserved of what kind that is.
	Observable bool              `json:"observable"`
	Unobserved schema.Unobserved `json:"unobserved,omitempty" redact:"-"`
	Verdict    Verdict           `json:"verdict" redact:"-"`
	// Exercised counts how often the target was seen to meet or break it.
	Exercised int    `json:"exercised"`
	Reason    string `json:"reason,omitempty"`
	// Unexercised is the kind of the reason why it is inconclusive.
	Unexercised Unexercised `json:"unexercised,omitempty" redact:"-"`
	// NotUsed names a use that the run offered and tried to bring about, and that the target never made. The
	// requirement is about nothing else and is then inconclusive.
	NotUsed  string    `json:"notUsed,omitempty" redact:"-"`
	Checks   []string  `json:"checks,omitempty"` // names of the checks and rules that serve it
	Findings []Finding `json:"findings,omitempty"`
	// Omitted counts further findings of the same kind that were not kept, those among
	// them that a finding counts as repeated.
	Omitted int `json:"omitted,omitempty"`
	// Disputed is the dispute about the findings, if all that decide the verdict are
	// contested. They then count only in a strict run.
	Disputed *Dispute `json:"disputed,omitempty" redact:"-"`
	// SDK is the known fault of the target's SDK that causes all findings, if there is one.
	SDK *SDKFault `json:"sdk,omitempty" redact:"-"`
	// Expected is the reason given in the expected-failures file, when that
	// file covers this requirement's failure.
	Expected string   `json:"expected,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// Login is a login that did not lead to an access token that the server accepts.
type Login struct {
	// Text is the paragraph that reports show.
	Text  string      `json:"text"`
	Steps []LoginStep `json:"steps"`
	// Duty is the party whose duty was broken, "nobody" or "undecided".
	Duty string `json:"duty" redact:"-"`
	// Requirement is the duty that was broken.
	Requirement string `json:"requirement,omitempty" redact:"-"`
}

// LoginStep is one request of a login, and what came.
type LoginStep struct {
	Asked string `json:"asked"`
	Came  string `json:"came"`
}

// Uncalled is a tool that was not called, and why.
type Uncalled struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// Finding is one violation, or one harness error, with its evidence.
type Finding struct {
	// Check is the check or passive rule that found it.
	Check   string `json:"check,omitempty"`
	Message string `json:"message"`
	// Repeated counts how often the same was found again, at other events.
	Repeated int `json:"repeated,omitempty"`
	// Disputed is the id of the dispute about this finding.
	Disputed string `json:"disputed,omitempty" redact:"-"`
	// Evidence holds the wire events that prove it, oldest first.
	Evidence []Event `json:"evidence,omitempty"`
}

// Dispute says that maintainers of the specification or of SDKs contest findings.
type Dispute struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Threads  []Thread `json:"threads"`
	Position string   `json:"position"` // of mcpconform
}

// Thread is a public discussion of a dispute.
type Thread struct {
	URL  string `json:"url"`
	Says string `json:"says"` // what the maintainers say there
}

// Event is one event of the trace as a report shows it.
type Event struct {
	// Connection and Seq find the event in the trace file.
	Connection string `json:"connection" redact:"-"`
	Seq        int    `json:"seq"`
	// Seconds since the run started.
	Seconds float64 `json:"seconds"`
	Kind    string  `json:"kind" redact:"-"`           // message, http-request, process-exit, …
	From    string  `json:"from,omitempty" redact:"-"` // client or server
	// Stream is where it travelled: stdin, stdout, stderr, post:3, get:1 …
	Stream string `json:"stream,omitempty" redact:"-"`
	// Text is the event in UTF-8, shortened in the middle if long; bytes that
	// are not UTF-8 are written as \xHH.
	Text string `json:"text,omitempty"`
	// Truncated says that Text does not hold the whole event.
	Truncated bool `json:"truncated,omitempty"`
}

// ExpectedFailure tells what became of one entry of the expected-failures file.
type ExpectedFailure struct {
	ID      string `json:"id" redact:"-"`
	Reason  string `json:"reason,omitempty"`
	Expires string `json:"expires,omitempty" redact:"-"` // date, YYYY-MM-DD
	// Status is "failed" (as expected), "passed" or "unmatched" (both stale),
	// "expired" or "untested".
	Status string `json:"status" redact:"-"`
}

// Budget returns how much the run tried.
func (r *Run) Budget() Budget {
	switch {
	case r.Quick:
		return Quick
	case r.Thorough:
		return Thorough
	}
	return Default
}

// ByID returns the requirements of the run by their ids.
func (r *Run) ByID() map[string]*Requirement {
	all := make(map[string]*Requirement, len(r.Requirements))
	for i := range r.Requirements {
		all[r.Requirements[i].ID] = &r.Requirements[i]
	}
	return all
}

// Counts of verdicts over the observable requirements of a run.
func (r *Run) Counts() map[Verdict]int {
	counts := make(map[Verdict]int)
	for i := range r.Requirements {
		if r.Requirements[i].Observable {
			counts[r.Requirements[i].Verdict]++
		}
	}
	return counts
}

// Protocol returns the revision of the run. It is empty if this program does not know it.
func (r *Run) Protocol() *schema.Revision {
	revision, err := schema.For(r.Revision)
	if err != nil {
		return &schema.Revision{Version: r.Revision}
	}
	return revision
}

// ScriptPages is the first segment of the page of what a script of the user
// states, which no page of the specification has.
const ScriptPages = "scripts"

// URL of the requirement's sentence in the published specification, or "" for
// what a script of the user states.
func (q *Requirement) URL(revision string) string {
	if q.Page == ScriptPages || strings.HasPrefix(q.Page, ScriptPages+"/") {
		return ""
	}
	return schema.Source{Page: q.Page, Anchor: q.Anchor, Lead: q.Lead, Text: q.Text}.URL(revision)
}
