package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/suites/result"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Verify a certification bundle (see certify)",
		Long: `Holds a bundle against itself: digests, completeness, the conformance class, and the results against
the trace, which is judged again. The exit code is the verdict that the bundle certifies, or 1 if it is
refused. Who made the bundle is not verified: that takes a signature (docs/certification.md).`,
		Example: `  mcpconform verify bundle.zip`,
		Args:    one("one BUNDLE, as mcpconform certify writes it"),
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
