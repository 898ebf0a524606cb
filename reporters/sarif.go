package reporters

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// SARIFOptions say how SARIF renders.
type SARIFOptions struct {
	// Location is the file of the repository at which the results are shown, relative
	// to its root; empty means mcpconform.yaml.
	Location string
}

// The parts of a SARIF 2.1.0 log that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool              sarifTool         `json:"tool"`
		AutomationDetails sarifID           `json:"automationDetails"`
		Invocations       []sarifInvocation `json:"invocations"`
		Results           []sarifResult     `json:"results"`
		ColumnKind        string            `json:"columnKind"`
		Properties        map[string]string `json:"properties"`
	}
	sarifID struct {
		ID string `json:"id"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		Help                 sarifText          `json:"help"`
		HelpURI              string             `json:"helpUri,omitempty"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
		Properties           sarifTags          `json:"properties"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifTags struct {
		Tags []string `json:"tags"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		StartTimeUTC               string              `json:"startTimeUtc"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Level               string             `json:"level"`
		Message             sarifText          `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		OccurrenceCount     int                `json:"occurrenceCount"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		BaselineState       string             `json:"baselineState,omitempty"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

// DefaultLocation is the file at which SARIF results are shown unless there is a better one.
const DefaultLocation = "mcpconform.yaml"

// SARIF writes a log in SARIF 2.1.0 for code scanning: the observable requirements as
// rules, and a result for each that was broken. Its fingerprint is made of the role, the
// transport and the requirement's id, so that it stays the same however the target breaks it.
// A failure that was expected is suppressed, a disputed one is a note.
func SARIF(w io.Writer, run *result.Run, opts SARIFOptions) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	out := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: token(v.Tool.Name, "mcpconform"), Version: line(v.Tool.Version, limitName),
			InformationURI: "https://github.com/mcpconform/mcpconform", Rules: []sarifRule{},
		}},
		AutomationDetails: sarifID{fmt.Sprintf("mcpconform/%s/%s/", token(v.Role, "unknown"),
			token(v.Transport, "unknown"))},
		Results: []sarifResult{}, ColumnKind: "unicodeCodePoints",
		Properties: map[string]string{
			"revision": line(v.Revision, limitName), "role": line(v.Role, limitName),
			"transport": line(v.Transport, limitName),
			"target":    v.targetName(), "address": v.targetAddress(), "verdict": line(string(v.Verdict), limitName),
		},
	}
	if v.Target.SDK != nil {
		out.Properties["sdk"] = v.sdkName()
	}
	if v.Against != nil {
		out.Properties["against"] = v.compared()
	}
	invocation := sarifInvocation{ExecutionSuccessful: v.Verdict != result.Incomplete,
		StartTimeUTC: timestamp(v.Started, "2006-01-02T15:04:05Z")}
	if v.Verdict == result.Incomplete {
		invocation.ToolExecutionNotifications = []sarifNotification{{"error",
			sarifText{Text: "The run is incomplete: " + Incomplete(v.Run) + "."}}}
	}
	out.Invocations = []sarifInvocation{invocation}
	location := safeURL(cmp.Or(opts.Location, DefaultLocation))
	for _, p := range v.pages {
		for _, q := range p.requirements {
			out.Tool.Driver.Rules = append(out.Tool.Driver.Rules, v.sarifRule(q))
			if r, ok := v.sarifResult(q); ok {
				r.RuleIndex = len(out.Tool.Driver.Rules) - 1
				r.Locations = []sarifLocation{{sarifPhysical{sarifArtifact{location}, sarifRegion{1}}}}
				out.Results = append(out.Results, r)
			}
		}
	}
	return WriteJSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{out},
	}, "SARIF")
}

func (v *view) sarifRule(q *result.Requirement) sarifRule {
	id, summary := token(q.ID, "unknown"), cmp.Or(line(q.Summary, limitMessage), "no summary")
	level := "note"
	switch q.Level {
	case "MUST", "MUST NOT":
		level = "error"
	case "SHOULD", "SHOULD NOT":
		level = "warning"
	}
	link := v.link(q)
	help := sarifText{Text: fmt.Sprintf("%s: %s", strings.Join(grade(q), ", "), summary)}
	help.Markdown = mdText(help.Text)
	if link != "" {
		help.Text += "\nThe specification says so at " + link
		help.Markdown += "\n\n[The sentence of the specification](" + link + ")"
	}
	tags := []string{"mcp", token(q.Page, "page unknown"), token(q.Level, "level unknown")}
	slices.Sort(tags)
	return sarifRule{
		ID: id, ShortDescription: sarifText{Text: summary}, FullDescription: sarifText{Text: summary}, Help: help,
		HelpURI:              link,
		DefaultConfiguration: sarifConfiguration{level},
		Properties:           sarifTags{slices.Compact(tags)},
	}
}

// sarifResult returns what was found about a requirement, if anything was.
func (v *view) sarifResult(q *result.Requirement) (sarifResult, bool) {
	r := sarifResult{RuleID: token(q.ID, "unknown"), OccurrenceCount: max(1, len(q.Findings)+q.Omitted)}
	switch v.outcome(q) {
	case outFail:
		r.Level = "error"
	case outWarn:
		r.Level = "warning"
		if v.Strict {
			r.Level = "error"
		}
	case outDisputed:
		r.Level = "note"
	case outExpected:
		reason, _ := v.expectation(q)
		r.Level = "error"
		r.Suppressions = []sarifSuppression{{"external", "accepted", line(reason, limitMessage)}}
	default:
		return r, false
	}
	var lines []string
	for i := range q.Findings {
		if i == briefFindings {
			lines = append(lines, fmt.Sprintf("and %d more", len(q.Findings)-i))
			break
		}
		lines = append(lines, line(q.Findings[i].Message, limitMessage))
	}
	if len(lines) == 0 {
		lines = []string{cmp.Or(line(q.Reason, limitMessage), line(q.Summary, limitMessage), "broken")}
	}
	if q.Disputed != nil {
		lines = append(lines, "disputed: "+line(q.Disputed.Title, limitMessage))
	}
	if q.SDK != nil {
		lines = append(lines, v.knownUpstream(q))
	}
	// Brackets would be links, and braces placeholders.
	r.Message.Text = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "{", "{{", "}",
		"}}").Replace(strings.Join(lines, "\n"))
	sum := sha256.Sum256([]byte(strings.Join([]string{v.Role, v.Transport, q.ID}, "\n")))
	r.PartialFingerprints = map[string]string{
		"primaryLocationLineHash":  hex.EncodeToString(sum[:8]) + ":1",
		"mcpconformRequirement/v1": hex.EncodeToString(sum[:]),
	}
	if v.Against != nil {
		r.BaselineState = "unchanged"
		if v.isNew(q) {
			r.BaselineState = "new"
		}
	}
	return r, true
}
