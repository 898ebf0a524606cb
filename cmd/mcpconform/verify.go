package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/suites/result"
)

func verifyCommand() *cobra.Command {
	var attestation string
	cmd := &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Verify a certification bundle (see certify)",
		Long: `Holds a bundle against itself: digests, completeness, the conformance class, and the results against
the trace, which is judged again. The exit code is the verdict that the bundle certifies, or 1 if it is
refused. Who made the bundle is not verified: that takes a signature (docs/certification.md).`,
		Example: `  mcpconform verify bundle.zip
  mcpconform verify bundle.zip --attestation statement.json`,
		Args: one("one BUNDLE, as mcpconform certify writes it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return fmt.Errorf("%s is not a file", args[0])
			}
			v := bundle.Verify(f, info.Size(), time.Now())
			if attestation != "" {
				if err := compareAttestation(v, attestation, io.NewSectionReader(f, 0, info.Size())); err != nil {
					return fmt.Errorf("--attestation: %w", err)
				}
			}
			if err := bundle.Describe(discreet{cmd.OutOrStdout(), newRedactor(nil, nil)}, v, version()); err != nil {
				return err
			}
			switch {
			case v.OtherCatalogue && len(v.Refusals) == 0:
				return exitError(exitIncomplete)
			case !v.Accepted():
				return exitError(exitNotConformant)
			}
			return exitCode(v.Manifest.Verdict)
		},
	}
	cmd.Flags().StringVar(&attestation, "attestation", "", "also compare the in-toto statement in `FILE`: by itself, in a DSSE envelope or in a Sigstore bundle")
	return cmd
}

func compareAttestation(v *bundle.Verification, file string, archive io.Reader) error {
	statement, err := os.Open(file)
	if err != nil {
		return err
	}
	defer statement.Close()
	return v.Attestation(statement, archive)
}

// exitCode returns the exit code of a verdict as an error, or nil.
func exitCode(v result.Overall) error {
	switch v {
	case result.NotConformant:
		return exitError(exitNotConformant)
	case result.Incomplete:
		return exitError(exitIncomplete)
	}
	return nil
}
