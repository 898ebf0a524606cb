package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/result"
)

// besideClient is the client that both tools try.
const besideClient = "ts-client"

// sameAs names the requirements that checks of the official package are about, or scenarios as a whole. A check that is
// missing here is about none of this revision.
var sameAs = map[string][]string{
	"auth/metadata-var2":                  {ids.AuthClientAsMetadataLocation},
	"auth/metadata-var3":                  {ids.AuthClientParseWWWAuthenticate},
	"authorization-request":               {ids.AuthClientHandles401},
	"authorization-server-metadata":       {ids.AuthClientAsMetadata},
	"client-registration":                 {ids.AuthClientDynamicRegistration},
	"pkce-code-challenge-sent":            {ids.AuthClientPKCEChallenge},
	"pkce-code-verifier-sent":             {ids.AuthClientPKCEVerifier},
	"pkce-s256-method-used":               {ids.AuthClientPKCES256},
	"pkce-verifier-matches-challenge":     {ids.AuthClientPKCEVerifier},
	"pre-registration-auth":               {ids.AuthClientOtherClientID},
	"prm-pathbased-requested":             {ids.AuthClientResourceMetadata},
	"resource-parameter-consistency":      {ids.AuthClientResourceTokenRequest},
	"resource-parameter-in-authorization": {ids.AuthClientResourceAuthorizationRequest},
	"resource-parameter-in-token":         {ids.AuthClientResourceTokenRequest},
	"resource-parameter-valid-uri":        {ids.AuthResourceHasScheme, ids.AuthResourceNoFragment},
	"token-endpoint-auth-method":          {ids.AuthClientTokenEndpointAuth},
	"token-request":                       {ids.AuthClientTokenRequestForm},
	"valid-bearer-token":                  {ids.AuthClientBearerHeader, ids.AuthClientRequestWithToken},
}

// official is what the package found by one of its checks, or in a scenario.
type official struct {
	verdict  string // the worst
	revision bool   // a scenario of this revision has the check
}

// beside writes what mcpconform and the official package try of a client's authorization, and what they find.
func beside(ctx context.Context, in *installer, repo string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("beside", flag.ContinueOnError)
	doc := flags.String("doc", "", "write the table into this `file`, between its marks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	t, err := newTester(ctx, in, repo)
	if err != nil {
		return err
	}
	defer t.close()
	ours, _, err := t.run(ctx, subject{in.data.target(besideClient), "http"}, "--select", "auth.*")
	if err != nil {
		return err
	}
	theirs := make(map[string]official)
	for _, revision := range []bool{true, false} {
		if err := t.official(ctx, revision, theirs); err != nil {
			return err
		}
	}
	text := besideTable(ours, theirs)
	if *doc != "" {
		return replaceBetween(*doc, "beside", text)
	}
	_, err = io.WriteString(out, text)
	return err
}

// official runs the scenarios of the package about authorization, all or those of this revision.
func (t *tester) official(ctx context.Context, revision bool, found map[string]official) error {
	dir, err := os.MkdirTemp(t.dir, "official")
	if err != nil {
		return err
	}
	client, err := t.in.prepare(t.repo, t.in.data.target(besideClient), "http", Values{Tmp: dir, URL: "{url}"})
	if err != nil {
		return err
	}
	tool, err := t.in.prepare(t.repo, t.in.data.target("conformance"), "http", Values{Tmp: dir, URL: "{url}"})
	if err != nil {
		return err
	}
	command := strings.Join(client.Command[:len(client.Command)-1], " ") // the tool appends the URL
	args := []string{tool.Command[1], "client", "--suite", "auth", "--output-dir", dir, "--command", command}
	if revision {
		args = append(args, "--spec-version", schema.DefaultVersion)
	}
	cmd := exec.CommandContext(ctx, tool.Command[0], args...)
	cmd.Dir, cmd.Env = dir, environ(client.Env, tool.Env)
	// Status 1 says that a scenario has failed.
	if text, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("the official package has left no results")
	}
	for _, file := range files {
		var checks []struct{ ID, Status string }
		if err := readJSON(file, &checks); err != nil {
			return err
		}
		scenario, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-20") // the time follows
		scenario = "auth/" + scenario
		for _, c := range checks {
			if c.Status == "INFO" { // a record of what was sent
				continue
			}
			for _, id := range []string{c.ID, scenario} {
				if id != scenario || sameAs[id] != nil {
					found[id] = official{worse(found[id].verdict, c.Status), found[id].revision || revision}
				}
			}
		}
	}
	return nil
}

// worse returns the worse one of two verdicts of the official package, of which "" is none.
func worse(a, b string) string {
	order := []string{"", "SUCCESS", "WARNING", "FAILURE"}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

func besideTable(ours *result.Run, theirs map[string]official) string {
	checks := make(map[string][]string) // by requirement
	var other []string
	for _, id := range slices.Sorted(maps.Keys(theirs)) {
		if len(sameAs[id]) == 0 {
			other = append(other, shown(id, theirs[id]))
		}
		for _, q := range sameAs[id] {
			checks[q] = append(checks[q], shown(id, theirs[id]))
		}
	}
	var b strings.Builder
	b.WriteString("| requirement | what it demands | mcpconform | the official package |\n|---|---|---|---|\n")
	tried, both := 0, 0
	for _, q := range ours.Requirements {
		if q.Verdict != result.Pass && q.Verdict != result.Fail && q.Verdict != result.Warn {
			continue
		}
		if tried++; len(checks[q.ID]) > 0 {
			both++
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", q.ID, q.Summary, q.Verdict,
			cmp.Or(strings.Join(checks[q.ID], "; "), "not tried"))
	}
	fmt.Fprintf(&b, "\nmcpconform exercises %d requirements here, and the official package tries %d of them. "+
		"Its checks about none of them: %s.\n", tried, both, cmp.Or(strings.Join(other, "; "), "none"))
	return b.String()
}

// shown is a check of the official package, its verdict, and whether this revision has it.
func shown(id string, o official) string {
	text := "`" + id + "` " + map[string]string{"SUCCESS": "pass", "WARNING": "warn", "FAILURE": "fail"}[o.verdict]
	if !o.revision {
		text += " (in scenarios of a later revision)"
	}
	return text
}
