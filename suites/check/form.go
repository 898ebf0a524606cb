package check

import (
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/values"
)

// Form fills in a requested schema of an elicitation as far as that can be done. It leaves out objects and arrays,
// which a form cannot hold, even if the schema asks for them (client/elicitation#request-schema).
func Form(schema any) map[string]any {
	content := make(map[string]any)
	properties, _ := wire.At(schema, "properties").(map[string]any)
	for name, property := range properties {
		value, ok := values.Full(property)
		switch value.(type) {
		case nil, []any, map[string]any:
		default:
			if ok {
				content[name] = value
			}
		}
	}
	return content
}
