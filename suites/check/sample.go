package check

import "github.com/mcpconform/mcpconform/suites/generate"

// SampleValue returns a value that fits a schema, as far as one can be made.
func SampleValue(schema any) any {
	value, ok, _ := generate.Full(schema)
	if !ok {
		return "sample"
	}
	return value
}
