// Command reconcile compares the catalogue of requirements with the text of the
// specification:
//
//	go run ./schema/reconcile [-dir schema/2025-06-18] [-write] CHECKOUT
//
// CHECKOUT holds docs/specification and schema of the specification's
// repository, at a commit before 2026-03-25: on that day the page on security best
// practices left the folder of the revision. Every RFC 2119 keyword in capitals must be covered by exactly one line of
// coverage.yaml, which names requirements or a reason; every place that the
// catalogue names must exist, with the words that find a sentence there; a sentence
// that is said to have a keyword must have it; and the catalogue's own sentences must
// not be those of the specification. With -write the number of keywords in each section goes to
// occurrences.yaml, and the headings of each page to headings.yaml, by which the tests notice
// lost coverage and links that lead nowhere without a checkout.
//
// It exits with 1 if there is a gap and with 2 if it could not compare.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	gaps, err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "reconcile:", err)
		os.Exit(2)
	case gaps > 0:
		os.Exit(1)
	}
}

// run returns the number of gaps found.
func run(args []string, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("reconcile", flag.ContinueOnError)
	dir := flags.String("dir", "schema/2025-06-18", "folder with requirements.yaml and coverage.yaml")
	write := flags.Bool("write", false, "write occurrences.yaml and headings.yaml")
	if err := flags.Parse(args); err != nil {
		return 0, err
	}
	if flags.NArg() != 1 {
		return 0, errors.New("usage: reconcile [-dir DIR] [-write] CHECKOUT")
	}
	spec, err := readSpecification(flags.Arg(0))
	if err != nil {
		return 0, err
	}
	if *write {
		if err := errors.Join(writeCounts(*dir, spec.occurrences), writeHeadings(*dir, spec.pages)); err != nil {
			return 0, err
		}
	}
	r, err := reconcile(spec, *dir)
	if err != nil {
		return 0, err
	}
	r.print(out)
	return len(r.gaps), nil
}
