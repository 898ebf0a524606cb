package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
)

// released and commit are set by the linker in a release (.ci/release). Otherwise they follow from what go build and
// go install know.
var released, commit string

// build says what this binary was built from, and for what.
type build struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitempty"` // unknown after go install
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Revisions []string `json:"revisions"`
}

// thisBuild is the build that runs.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info, released, commit)
}

// buildOf joins what the linker set to the information of the build, which may be nil.
func buildOf(info *debug.BuildInfo, released, commit string) build {
	b := build{
		Version: released, Commit: commit,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Revisions: schema.Known(),
	}
	if info != nil {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = cmp.Or(b.Commit, s.Value)
			}
		}
	}
	b.Version = cmp.Or(b.Version, "(devel)")
	return b
}

// version names the version of this binary as reports do.
func version() string { return thisBuild().Version }

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, its source, and the known revisions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return reporters.WriteJSON(cmd.OutOrStdout(), thisBuild(), "version")
			}
			return writeBuild(cmd.OutOrStdout(), thisBuild())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeBuild(w io.Writer, b build) error {
	_, err := fmt.Fprintf(w, "mcpconform %s\ncommit     %s\nGo         %s\nplatform   %s\nrevision   %s\n", b.Version,
		cmp.Or(b.Commit, "unknown"), b.Go, b.Platform, strings.Join(b.Revisions, "\nrevision   "))
	return err
}
