package bundle

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/mcpconform/mcpconform/reporters"
)

// mostRefusals is how many refusals are shown; the first ones say enough.
const mostRefusals = 40

func (n Counts) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{n.Broken, "broken"},
		{n.Warned, "warned"},
		{n.Undecided, "undecided"},
		{n.Disputed, "disputed"},
		{n.Passed, "passed"},
		{n.NotApplicable, "not applicable"},
		{n.NotUsed, "not used"},
		{n.Inconclusive - n.NotUsed, "untested"},
	} {
		if p.n > 0 || p.what == "passed" {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Refusals writes why a bundle is refused, a line a reason.
func Refusals(w io.Writer, v *Verification) error {
	b := bufio.NewWriter(w)
	for i, r := range v.Refusals {
		if i == mostRefusals {
			fmt.Fprintf(b, "  and %d more\n", len(v.Refusals)-i)
			break
		}
		fmt.Fprintf(b, "  %s: %s\n", reporters.Line(r.Where), reporters.Line(r.Why))
	}
	return b.Flush()
}

// Describe writes the verification of a bundle for people: its claims, whether they hold, and the recomputed parts.
// own is the version of this program.
func Describe(w io.Writer, v *Verification, own string) error {
	b := bufio.NewWriter(w)
	if v.Manifest.Format == Format {
		describeRun(b, v, own)
	}
	switch {
	case len(v.Refusals) > 0:
		fmt.Fprintln(b, "REFUSED: the bundle does not hold what it says.")
		if err := b.Flush(); err != nil {
			return err
		}
		return Refusals(w, v)
	case v.OtherCatalogue:
		fmt.Fprintf(b,
			"NOT VERIFIED: its requirements are not those of this version (catalogue %s). Verify it with the "+
				"version that made it.\n",
			reporters.Line(v.Manifest.CatalogueSHA256))
	default:
		describeAcceptance(b, v)
	}
	return b.Flush()
}

// describeRun writes what a bundle says of itself. own is the version of this program.
func describeRun(b io.Writer, v *Verification, own string) {
	m := v.Manifest
	fmt.Fprintf(b, "made by    %s\n", reporters.Line(m.Tool.Name+" "+m.Tool.Version+" on "+m.Platform.String()))
	if v.Run != nil {
		t := v.Run.Target
		fmt.Fprintf(b, "target     %s\n", reporters.Line(strings.TrimSpace(t.Name+" "+t.Version)+", a "+v.Run.Role+
			" over "+v.Run.Transport))
		fmt.Fprintf(b, "run        %s, %.1f s\n", v.Run.Started.UTC().Format("2006-01-02 15:04:05 UTC"),
			v.Run.Seconds)
	}
	fmt.Fprintf(b, "class      %s\n", reporters.Line(fmt.Sprintf("%s, version %d, SHA-256 %s", m.Class.ID,
		m.Class.Version, m.Class.SHA256)))
	fmt.Fprintf(b, "verdict    %s: %s\n\n", reporters.Line(string(m.Verdict)), m.Counts)
	if m.Tool.Version != own {
		agrees := "whose catalogue of requirements is the same"
		if v.OtherCatalogue {
			agrees = "whose catalogue of requirements is another"
		}
		fmt.Fprintf(b, "It was made by version %s; this is version %s, %s.\n", reporters.Line(m.Tool.Version),
			reporters.Line(own), agrees)
	}
}

// describeAcceptance writes what the verification of an accepted bundle has shown, and what it cannot show.
func describeAcceptance(b io.Writer, v *Verification) {
	r := v.Rechecked
	fmt.Fprintln(b, "ACCEPTED: files, class, completeness and verdict agree with each other and with the trace.")
	fmt.Fprintf(b,
		"Recomputed: the rules judged the trace again and found the same about %d requirements; %d events that "+
			"findings quote are in it.\n",
		r.Judged, r.Events)
	fmt.Fprintf(b,
		"Not recomputed: %d verdicts rest on what only the checks of the run could know, and %d requirements "+
			"were not exercised",
		r.Provoked, r.Silent)
	if n := len(r.Unknown); n > 0 {
		fmt.Fprintf(b, "; %d depend on secrets, which the trace does not have (%s)", n, strings.Join(r.Unknown, ", "))
	}
	if v.Attested {
		signatures := "it is not signed"
		if v.Signatures > 0 {
			signatures = fmt.Sprintf("mcpconform verifies none of its signatures (%d), cosign does", v.Signatures)
		}
		fmt.Fprintf(b, ".\nAttested: the statement is about this bundle; %s", signatures)
	}
	fmt.Fprintln(b,
		".\nNot verified: who made the bundle. Only a signature shows that nobody made up all of "+
			"it (docs/certification.md).")
}
