package generate

// PromptSchema returns a JSON Schema for the arguments of prompts/get, from the
// decoded "arguments" member of a prompt as prompts/list has it: an object whose
// members are strings, those with "required": true required. Parts that are not
// of that form are left out.
func PromptSchema(arguments any) map[string]any {
	// https://modelcontextprotocol.io/specification/2025-06-18/server/prompts#prompt
	properties, required := map[string]any{}, []any{}
	list, _ := arguments.([]any)
	for _, item := range list {
		argument, _ := item.(map[string]any)
		name, ok := argument["name"].(string)
		if !ok {
			continue
		}
		if _, known := properties[name]; !known && argument["required"] == true {
			required = append(required, name)
		}
		properties[name] = map[string]any{"type": "string"}
	}
	return map[string]any{
		"type":                 "object",
		"properties":           properties,
		"required":             required,
		"additionalProperties": map[string]any{"type": "string"},
	}
}
