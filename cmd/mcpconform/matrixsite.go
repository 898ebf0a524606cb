package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// mostRuns bounds how many runs a site shows: all of them are in memory at once.
const mostRuns = 500

func matrixCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "matrix DIR --out SITE",
		Short: "Render many bundles and results as a static site",
		Long: `Reads the certification bundles (.zip) and results (.json) in the folder DIR and below, and writes a site
to the folder SITE: implementations by conformance class, the history of each, and where they differ. Each
bundle is verified; one that is refused is left out, and the exit code is 1.`,
		Example: `  mcpconform matrix results --out site`,
		Args:    one("one DIR with bundles and results"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("--out is missing; it names the folder of the site")
			}
			say := discreet{guarded(cmd.ErrOrStderr()), newRedactor(nil, nil)}
			runs, refused, err := readRuns(args[0], say)
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				return fmt.Errorf("%s holds neither a bundle nor results that can be shown", args[0])
			}
			files, err := reporters.Site(runs)
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := writeFile(filepath.Join(out, filepath.FromSlash(f.Name)),
					func(w io.Writer) error { _, err := w.Write(f.Content); return err }); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d runs on %d pages\n", filepath.Join(out, "index.html"), len(runs),
				len(files))
			if refused {
				return exitError(exitNotConformant)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write the site to the folder `SITE`")
	return cmd
}

// readRuns returns the runs of a folder for a site, and whether a bundle was refused. It reports the files that it
// leaves out.
func readRuns(dir string, say io.Writer) (runs []reporters.SiteRun, refused bool, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		var r reporters.SiteRun
		switch strings.ToLower(filepath.Ext(path)) {
		case ".zip":
			var v *bundle.Verification
			if v, err = verifyFile(path, ""); err != nil {
				return err
			}
			if len(v.Refusals) > 0 {
				refused = true
				fmt.Fprintf(say, "mcpconform: %s is refused and left out:\n", path)
				return bundle.Refusals(say, v)
			}
			r.Run, r.Verified = v.Run, v.Accepted()
		case ".json":
			if r.Run, err = readResults(path); err != nil {
				fmt.Fprintf(say, "mcpconform: %s is left out: %s\n", path, reporters.Line(err.Error()))
				return nil
			}
			if r.Run.Shard != nil {
				fmt.Fprintf(say,
					"mcpconform: %s is left out: it is a shard; mcpconform report makes one result of all\n", path)
				return nil
			}
		default:
			return nil
		}
		if len(runs) == mostRuns {
			return fmt.Errorf("%s holds more than %d runs", dir, mostRuns)
		}
		r.Core, r.Extended = onClass(r.Run, schema.CoreClass), onClass(r.Run, schema.ExtendedClass)
		runs = append(runs, r)
		return nil
	})
	return runs, refused, err
}

// onClass returns the verdict of a whole run on the newest class of its role and transport.
func onClass(run *result.Run, extent string) reporters.SiteVerdict {
	class, ok := run.Protocol().FindClass(schema.ClassID(run.Role, run.Transport, extent), 0)
	if !ok || run.Partial || run.Quick {
		return reporters.SiteVerdict{}
	}
	verdict, counts := bundle.Judge(class, run)
	return reporters.SiteVerdict{Verdict: verdict, Counts: counts.String()}
}
