package reporters

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/suites/result"
)

func annotated(t *testing.T, members ...Member) string {
	t.Helper()
	var b bytes.Buffer
	if err := GitHub(&b, members); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGuard(t *testing.T) {
	for in, want := range map[string]string{
		"::error::x":                ": :error::x",
		"  \t::error::x\na::b":      "  \t: :error::x\na::b",
		"a\r::b":                    "a\r: :b",
		":::a":                      ": ::a",
		"a ##[error]x ###[b] # [c]": "a ## [error]x ### [b] # [c]",
		": a\n:":                    ": a\n:",
		"":                          "",
	} {
		// However the text is cut into writes.
		for size := 1; size <= len(in)+1; size++ {
			var b bytes.Buffer
			g := Guard(&b)
			for at := 0; at < len(in); at += size {
				part := in[at:min(at+size, len(in))]
				if n, err := g.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if b.String() != want {
				t.Errorf("%q in parts of %d becomes %q, want %q", in, size, b.String(), want)
			}
		}
	}
	if _, err := Guard(&brokenWriter{}).Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("::a", ":: ##[b")
	f.Fuzz(func(t *testing.T, a, b string) {
		var out bytes.Buffer
		g := Guard(&out)
		for _, part := range []string{a, b} {
			if _, err := g.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := wellformed.Guarded(out.String()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnnotations(t *testing.T) {
	run := sampleRun()
	got := annotated(t, Member{Run: run})
	for _, want := range []string{
		"::error title=MUST broken%3A lifecycle.version.echo-supported::the result names \"protocolVersion\" 2024-11-05 although",
		"%0Ahttps://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#version-negotiation",
		"::error title=Expected failure%3A tools.gone::matches no requirement",
		"::warning title=SHOULD not followed%3A tools.list.unique-names::",
		"::notice title=MCP 2025-06-18 server%3A not conformant::",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	run.Verdict, run.Reason = result.Incomplete, "it was interrupted"
	if got := annotated(t, Member{Run: run}); !strings.HasPrefix(got, "::error title=The run is incomplete::it was interrupted\n") {
		t.Errorf("it begins\n%.200s", got)
	}
	run.Against = &result.Comparison{New: []string{"stdio.stdout.only-messages"}}
	got = annotated(t, Member{Name: "a,b", Run: run}, Member{Name: "c", Err: errors.New("50% done")})
	for _, want := range []string{
		"::error title=a%2Cb%3A MUST NOT broken%3A stdio.stdout.only-messages::",
		"::warning title=a%2Cb%3A MUST broken%2C as in the earlier results%3A lifecycle",
		"::error title=c%3A not tested::50%25 done\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// GitHub shows ten of a kind; each line is one command, whatever a target says.
func TestAnnotationsAreBounded(t *testing.T) {
	run := sampleRun()
	plantAll(run, "x\n::error::owned ##[error]"+hostile)
	for i := range 30 {
		for _, v := range []result.Verdict{result.Fail, result.Warn, result.Error} {
			run.Requirements = append(run.Requirements, result.Requirement{ID: fmt.Sprint(v, i), Level: "MUST", Observable: true, Verdict: v, Page: "p", Reason: "\r\n::error::x"})
		}
	}
	counts := make(map[string]int)
	text := annotated(t, Member{Name: "::n##[", Run: run}, Member{Run: run})
	if err := wellformed.Commands(text); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(text) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(line, "::"), " ")
		counts[kind]++
	}
	for kind, n := range counts {
		if n > maxAnnotations || kind != "error" && kind != "warning" && kind != "notice" {
			t.Errorf("%d of kind %q", n, kind)
		}
	}
	if counts["error"] != maxAnnotations || counts["warning"] != maxAnnotations {
		t.Errorf("%v", counts)
	}
}

func TestStepSummary(t *testing.T) {
	summary := func(limit int, members ...Member) string {
		var b bytes.Buffer
		if err := StepSummary(&b, members, limit); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	run := sampleRun()
	got := summary(MaxStepSummary, Member{Name: "weather", Run: run})
	for _, want := range []string{
		"### weather: not conformant\n", "[`lifecycle.version.echo-supported`](https://modelcontextprotocol.io/", "[`tools.list.unique-names`]", "4 untested", "1 not used",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	plantAll(run, strings.Repeat(hostile, 1000))
	members := make([]Member, 400)
	for i := range members {
		members[i] = Member{Run: run}
	}
	for _, limit := range []int{-1, 0, 50, 1000, MaxStepSummary} {
		if got := summary(limit, members...); len(got) > max(limit, 0) || limit > 1000 && !strings.Contains(got, "left out: the summary would be too long") {
			t.Errorf("%d bytes for a limit of %d:\n%.300s", len(got), limit, got)
		}
	}
}
