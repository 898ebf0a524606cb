package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// compareVerdicts judges all examples by both schemas.
func compareVerdicts(ours, theirs []byte, dir string) (found []string, examples int, err error) {
	corpus, err := source.Corpus(dir)
	if err != nil {
		return nil, 0, err
	}
	own, err := parse(ours)
	if err != nil {
		return nil, 0, err
	}
	published, err := parse(theirs)
	if err != nil {
		return nil, 0, fmt.Errorf("published schema: %w", err)
	}
	covered := map[string]bool{}
	for _, cases := range corpus {
		covered[cases.Definition] = true
		judge := func(value any, example string, oursAccept, theirsAccept bool) {
			examples++
			if got := own.Validate(cases.Definition, value); (len(got) == 0) != oursAccept {
				found = append(found, fmt.Sprintf("%s, %s: own verdict is %v", cases.Definition, example, got))
			}
			if got := published.Validate(cases.Definition, value); (len(got) == 0) != theirsAccept {
				found = append(found, fmt.Sprintf("%s, %s: published verdict is %v", cases.Definition, example, got))
			}
		}
		for i, value := range cases.Valid {
			judge(value, fmt.Sprintf("valid example %d", i), true, true)
		}
		for _, c := range cases.Invalid {
			judge(c.Value, c.Why, false, false)
		}
		for i, value := range cases.Wider {
			if !touched(cases.Definition) {
				found = append(found, fmt.Sprintf("%s has a wider example, but no difference that is meant",
					cases.Definition))
			}
			judge(value, fmt.Sprintf("wider example %d", i), true, false)
		}
	}
	for _, name := range own.Names() {
		if !covered[name] {
			found = append(found, name+" has no examples")
		}
	}
	return found, examples, nil
}

// parse reads a schema of which every definition is valid.
func parse(document []byte) (*schema.Definitions, error) {
	r, err := schema.Parse(document)
	if err != nil {
		return nil, err
	}
	if err := r.Warm(context.Background()); err != nil {
		return nil, err
	}
	return r, nil
}

func touched(definition string) bool {
	for _, m := range meant {
		if strings.HasPrefix(m.pointer, "/definitions/"+definition+"/") {
			return true
		}
	}
	return false
}
