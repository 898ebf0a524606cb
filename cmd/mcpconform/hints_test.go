package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/schema"
)

// The option that a hint names is a flag of the command for its party, a role of tools or a key
// of the configuration, which only servers have.
func TestOptionsOfHints(t *testing.T) {
	type properties map[string]struct {
		Properties map[string]any `json:"properties"`
	}
	data, err := os.ReadFile("../../fixtures/config/mcpconform.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Properties properties `json:"properties"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	hints, err := schema.Hints()
	if err != nil {
		t.Fatal(err)
	}
	commands := map[schema.Party]*cobra.Command{schema.Server: serverCommand(), schema.Client: clientCommand()}
	for _, h := range hints {
		flag, isFlag := strings.CutPrefix(h.Option, "--")
		key, member, nested := strings.Cut(h.Option, ".")
		known := false
		switch {
		case h.Option == "":
			continue
		case isFlag:
			known = commands[h.Party] != nil && commands[h.Party].Flags().Lookup(flag) != nil
		case h.Party != schema.Server:
		case key == "toolRoles":
			known = profile.Known(member)
		default:
			k, ok := file.Properties[key]
			known = ok && (!nested || k.Properties[member] != nil)
		}
		if !known {
			t.Errorf("%q: there is no %s for a %s", h.Text, h.Option, h.Party)
		}
	}
}
