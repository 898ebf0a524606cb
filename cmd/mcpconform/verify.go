package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters/bundle"
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
			v, err := verifyFile(args[0], attestation)
			if err != nil {
				return err
			}
			if err := bundle.Describe(discreet{guarded(cmd.OutOrStdout()), newRedactor(nil, nil)}, v,
				version()); err != nil {
				return err
			}
			switch {
			case v.OtherCatalogue && len(v.Refusals) == 0:
				return exitError(exitIncomplete)
			case !v.Accepted():
				return exitError(exitNotConformant)
			}
			return ended(v.Manifest.Verdict.ExitCode())
		},
	}
	cmd.Flags().StringVar(&attestation, "attestation", "",
		"also compare the in-toto statement in `FILE`: by itself, in a DSSE envelope or in a Sigstore bundle")
	return cmd
}

// verifyFile verifies the bundle in a file and, if another one is named, the attestation in that.
func verifyFile(path, attestation string) (*bundle.Verification, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	v := bundle.Verify(f, info.Size(), time.Now())
	if attestation == "" {
		return v, nil
	}
	statement, err := os.Open(attestation)
	if err != nil {
		return nil, fmt.Errorf("--attestation: %w", err)
	}
	defer statement.Close()
	if err := v.Attestation(statement, io.NewSectionReader(f, 0, info.Size())); err != nil {
		return nil, fmt.Errorf("--attestation: %w", err)
	}
	return v, nil
}
