package client

import (
	"encoding/json"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// fill returns an object that fits simple schemas, as tool arguments and elicitation
// have: a value for each required property, by its type.
func fill(schema any) map[string]any {
	object := make(map[string]any)
	properties, _ := wire.At(schema, "properties").(map[string]any)
	required, _ := wire.At(schema, "required").([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			object[name] = fillValue(properties[name])
		}
	}
	return object
}

func fillValue(schema any) any {
	if choices, ok := wire.At(schema, "enum").([]any); ok && len(choices) > 0 {
		return choices[0]
	}
	switch wire.At(schema, "type") {
	case "boolean":
		return true
	case "integer", "number":
		if low, ok := wire.At(schema, "minimum").(json.Number); ok {
			return low
		}
		if high, ok := wire.At(schema, "maximum").(json.Number); ok {
			return high
		}
		return 1
	case "array":
		return []any{}
	case "object":
		return fill(schema)
	}
	return fillText(schema)
}

func fillText(schema any) string {
	switch wire.At(schema, "format") {
	case "email":
		return "someone@example.com"
	case "uri":
		return "https://example.com/"
	case "date":
		return "2025-06-18"
	case "date-time":
		return "2025-06-18T09:00:00Z"
	}
	text := "some text"
	if least, ok := wire.At(schema, "minLength").(json.Number); ok {
		if n, err := least.Int64(); err == nil && n > int64(len(text)) && n < 1<<16 {
			text += strings.Repeat(".", int(n)-len(text))
		}
	}
	if most, ok := wire.At(schema, "maxLength").(json.Number); ok {
		if n, err := most.Int64(); err == nil && n >= 0 && n < int64(len(text)) {
			text = text[:n]
		}
	}
	return text
}
