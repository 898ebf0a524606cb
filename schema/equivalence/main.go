// Command equivalence proves that the project's own JSON Schema means the same
// as the one that is published with the specification:
//
//	go run ./schema/equivalence [-fixtures fixtures/messages] PUBLISHED_SCHEMA.json
//
// It compares the structure of all definitions, without descriptions, and the verdicts
// of both on every example of the fixtures. The few differences that are meant are
// listed with their reasons in differences.go. It exits with 1 if there is any
// other, or if one of those is gone, and with 2 if it could not compare.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	differences, err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "equivalence:", err)
		os.Exit(2)
	case differences > 0:
		os.Exit(1)
	}
}

// run returns the number of differences that are not meant.
func run(args []string, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("equivalence", flag.ContinueOnError)
	own := flags.String("own", "schema/2025-06-18/schema.json", "the project's own schema")
	fixtures := flags.String("fixtures", "fixtures/messages", "folder with examples of each definition")
	if err := flags.Parse(args); err != nil {
		return 0, err
	}
	if flags.NArg() != 1 {
		return 0, errors.New("usage: equivalence [-own FILE] [-fixtures DIR] PUBLISHED_SCHEMA.json")
	}
	ours, err := os.ReadFile(*own)
	if err != nil {
		return 0, err
	}
	theirs, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return 0, err
	}
	structure, definitions, err := compareStructure(ours, theirs)
	if err != nil {
		return 0, err
	}
	verdicts, examples, err := compareVerdicts(ours, theirs, *fixtures)
	if err != nil {
		return 0, err
	}
	found := append(structure, verdicts...)
	for _, f := range found {
		fmt.Fprintln(out, "difference:", f)
	}
	fmt.Fprintf(out, "%d definitions, %d examples, %d differences that are meant, %d others\n",
		definitions, examples, len(meant), len(found))
	return len(found), nil
}
