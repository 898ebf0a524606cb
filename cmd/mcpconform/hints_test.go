package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/schema"
)

// Each option that a hint names is a flag of the command for its party, an act of a client, a role of tools or a key of
// the configuration, which only servers have.
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
	hints := schema.Default().Hints()
	commands := map[schema.Party]*cobra.Command{
		schema.Server: serverCommand(), schema.Client: clientCommand(), schema.AuthorizationServer: authorizationCommand(),
	}
	acts := slices.Concat(schema.Default().Methods(schema.Client), schema.Default().NotificationMethods(schema.Client))
	for _, h := range hints {
		for _, option := range h.Options {
			flag, isFlag := strings.CutPrefix(option, "--")
			key, member, nested := strings.Cut(option, ".")
			known := false
			switch {
			case isFlag:
				known = commands[h.Party] != nil && commands[h.Party].Flags().Lookup(flag) != nil
			case h.Party != schema.Server:
				known = option == "progressToken" || slices.Contains(acts, option)
			case key == "toolRoles":
				known = profile.Known(member)
			default:
				k, ok := file.Properties[key]
				known = ok && (!nested || k.Properties[member] != nil)
			}
			if !known {
				t.Errorf("%q: there is no %s for a %s", h.Text, option, h.Party)
			}
		}
	}
}
