package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// certifyFlags say what is certified, beside the flags of the run.
type certifyFlags struct{ out, extent, attestation, badge string }

func (f *certifyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "write the bundle to `BUNDLE`, a zip archive")
	choose(cmd, &f.extent, "class", schema.CoreClass,
		"certify against this conformance class of the role and transport",
		schema.CoreClass+"\twhat must be met", schema.ExtendedClass+"\tthat, and what is recommended or permitted")
	if f := flags.Lookup("attestation"); f != nil {
		f.Usage = "write an in-toto statement about the bundle to `FILE`"
	}
	for _, name := range partFlags {
		if flags.Lookup(name) != nil {
			_ = flags.MarkHidden(name) // fails only for a flag that is not there
		}
	}
}

// partFlags make a run one of a part, waive something, or change what counts. No
// certificate can be had of such a run.
var partFlags = []string{
	"quick", "select", "skip", "label-filter", "scenario", "shard", "scripts", "expected-failures", "expect-sdk",
	"strict",
	"all", "serve", "servers", "list-scenarios",
}

// check refuses flags with which no certificate can be had. Attestation and badge are
// about the bundle, so they are no reports of the run.
func (f *certifyFlags) check(cmd *cobra.Command, reports *reportFlags) error {
	f.attestation, reports.attestation = reports.attestation, ""
	f.badge, reports.badge = reports.badge, ""
	for _, name := range partFlags {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s cannot be given: certify runs everything, waives nothing, and lets the class "+
				"say what counts",
				name)
		}
	}
	if f.out == "" || f.out == "-" {
		return errors.New("--out is missing; it names the bundle, such as bundle.zip")
	}
	for flag, path := range map[string]string{"attestation": f.attestation, "badge": f.badge} {
		if path == f.out {
			return fmt.Errorf("--%s and --out name the same file, %s", flag, f.out)
		}
		if err := checkFile(path); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if err := checkFile(f.out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func certifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certify",
		Short: "Test a target whole and write a certification bundle",
		Long: `Runs all that there is against a target and writes a bundle: one zip archive with the results, the
trace, the configuration, a checklist, how to repeat the run, and a manifest with the verdict on a
conformance class. mcpconform verify checks it. docs/certification.md says what it proves.`,
	}
	cmd.AddCommand(certifyServerCommand(), certifyClientCommand())
	return cmd
}

func certifyServerCommand() *cobra.Command {
	var f serverFlags
	var c certifyFlags
	cmd := &cobra.Command{
		Use:   "server --out BUNDLE [flags] [-- COMMAND [ARG...]]",
		Short: "Certify a server; without a target, the embedded reference server",
		Long:  "Takes the flags of mcpconform server, but for those that select, waive or split.",
		Example: `  mcpconform certify server --out bundle.zip -- ./my-server
  mcpconform certify server --out bundle.zip --class extended --url https://mcp.example/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd, &f.reports); err != nil {
				return err
			}
			args, err := f.configure(cmd, args)
			if err != nil {
				return err
			}
			for what, given := range map[string]bool{
				"select": len(f.selection.Select) > 0, "skip": len(f.selection.Skip) > 0,
				"scripts":          len(f.scripts.folders) > 0,
				"expectedFailures": len(f.expected) > 0, "expectSDK": f.verdict.expectSDK, "strict": f.verdict.strict,
				"budget: quick": f.families.quick,
			} {
				if given {
					return fmt.Errorf("the configuration has %s: certify runs everything, waives nothing, and "+
						"lets the class say what counts; name another file with --config",
						what)
				}
			}
			o, run, trace, err := f.test(cmd.Context(), args)
			if err != nil {
				return err
			}
			s := o.Settings
			return c.write(cmd.OutOrStdout(), &f.reports, run, trace, o.Redactor, f.limits.settings(map[string]any{
				"callTools": s.CallTools, "toolRoles": s.ToolRoles, "trustedOrigins": s.TrustedOrigins,
				"public":    s.Public,
				"protected": s.Authorization.Protected, "givesUpAfter": s.GivesUpAfter.String(),
				// Not their values.
				"secrets": len(s.Secrets), "personalData": len(s.Personal), "tokens": len(s.Authorization.Tokens()),
			}))
		},
	}
	f.register(cmd)
	c.register(cmd)
	return cmd
}

func certifyClientCommand() *cobra.Command {
	var f clientFlags
	var c certifyFlags
	cmd := &cobra.Command{
		Use:     "client --out BUNDLE [flags] [-- COMMAND [ARG...]]",
		Short:   "Certify a client; without a target, the embedded reference client",
		Long:    "Takes the flags of mcpconform client, but for those that select, waive or split.",
		Example: `  mcpconform certify client --out bundle.zip -- node my-client.js {url}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd, &f.reports); err != nil {
				return err
			}
			o, run, trace, err := f.test(cmd, args)
			if err != nil {
				return err
			}
			return c.write(cmd.OutOrStdout(), &f.reports, run, trace, o.Redactor, f.limits.settings(map[string]any{
				"authorizes": f.authorizes, "givesUpAfter": f.limits.givesUp.String(),
			}))
		},
	}
	f.register(cmd)
	c.register(cmd)
	return cmd
}

// settings adds the limits to what a configuration says.
func (f *limitFlags) settings(of map[string]any) map[string]any {
	of["timeout"], of["runTimeout"], of["parallel"] = f.timeout.String(), f.run.String(), f.parallel
	return of
}

// write writes the bundle and the reports, and says what is certified. The exit code is
// that of the verdict on the class.
func (f *certifyFlags) write(w io.Writer, reports *reportFlags, run *result.Run, trace *wire.Trace,
	redactor *transport.Redactor, settings map[string]any) error {
	configuration, err := configuration(run, redactor, settings)
	if err != nil {
		return err
	}
	// The reports may add what is not of the run.
	manifest, failed := f.writeBundle(run, trace, configuration)
	var code exitError
	if err := reports.write(os.Stdout, run, trace); err != nil && !errors.As(err, &code) {
		return err
	}
	if failed != nil {
		return failed
	}
	if !reports.quiet {
		fmt.Fprintf(guarded(reports.beside(w)), "%s: %s to %s, version %d: %s\n", f.out, manifest.Verdict,
			manifest.Class.ID, manifest.Class.Version, manifest.Counts)
	}
	return ended(manifest.Verdict.ExitCode())
}

// writeBundle writes the bundle and what is about it.
func (f *certifyFlags) writeBundle(run *result.Run, trace *wire.Trace,
	configuration bundle.Configuration) (bundle.Manifest, error) {
	class, ok := run.Protocol().FindClass(schema.ClassID(run.Role, run.Transport, f.extent), 0)
	if !ok {
		return bundle.Manifest{}, fmt.Errorf("there is no conformance class of a %s over %q", run.Role, run.Transport)
	}
	var packed bytes.Buffer
	manifest, err := bundle.Write(&packed, bundle.Contents{
		Run: run, Trace: trace, Configuration: configuration, Class: class,
		Platform: bundle.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()},
	})
	if err != nil {
		return manifest, err
	}
	// A bundle that nobody would accept is not written.
	if v := bundle.Verify(bytes.NewReader(packed.Bytes()), int64(packed.Len()), time.Now()); !v.Accepted() {
		stderr := guarded(os.Stderr)
		fmt.Fprintln(stderr, "mcpconform: no bundle was written, because mcpconform verify would refuse it:")
		_ = bundle.Refusals(stderr, v)
		return manifest, exitError(exitIncomplete)
	}
	badge, err := bundle.Badge(run, manifest)
	if err != nil {
		return manifest, err
	}
	for _, file := range []struct {
		path   string
		render func(io.Writer) error
	}{
		{f.out, func(w io.Writer) error { _, err := w.Write(packed.Bytes()); return err }},
		{f.attestation, func(w io.Writer) error {
			return bundle.Attest(w, run, manifest, filepath.Base(f.out), packed.Bytes())
		}},
		{f.badge, func(w io.Writer) error { return writeBadge(w, f.badge, badge) }},
	} {
		if file.path == "" {
			continue
		}
		if err := writeFile(file.path, file.render); err != nil {
			return manifest, err
		}
	}
	return manifest, nil
}

// configuration returns what the run was made with, without secrets.
func configuration(run *result.Run, redactor *transport.Redactor,
	settings map[string]any) (bundle.Configuration, error) {
	own := newRedactor(nil, os.Args[1:])
	c := bundle.Configuration{
		Role: run.Role, Command: run.Target.Command, URL: run.Target.URL, Seed: run.Seed, Thorough: run.Thorough,
		Settings: settings,
	}
	for _, arg := range os.Args[1:] {
		c.Arguments = append(c.Arguments, redactor.String(own.String(arg)))
	}
	text, err := json.Marshal(c)
	if err != nil {
		return c, fmt.Errorf("configuration of the bundle: %w", err)
	}
	var clean bundle.Configuration
	if err := json.Unmarshal(redactor.Bytes(text), &clean); err != nil {
		return c, fmt.Errorf("configuration of the bundle, without secrets: %w", err)
	}
	return clean, nil
}
