package judge

import (
	"fmt"
	"maps"
	"math/big"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var elicitationRules = []Rule{{
	Name: "elicitation",
	Requirements: []string{ids.ElicitationCapabilityDeclared, ids.ElicitationCapabilityHonoured,
		ids.ElicitationRequestNested, ids.ElicitationRequestNoSensitive, ids.ElicitationSchemaFlat,
		ids.ElicitationSchemaPrimitiveTypes, ids.ElicitationSchemaNoAdvanced, ids.ElicitationSchemaFormats,
		ids.ElicitationSchemaEnumNames, ids.ElicitationSchemaNumberBounds, ids.ElicitationActionValues,
		ids.ElicitationContentWithAccept, ids.ElicitationContentOnlyWithAccept, ids.ElicitationContentMatchesSchema,
		ids.ElicitationContentPrimitiveValues, ids.ElicitationSecurityValidateContent,
		ids.LifecycleCapabilityClientRefusesElicitation},
	Judge: func(c *Conversation, rec *Recorder) {
		judgeFeature(c, elicitation, rec, judgeElicitRequest, judgeElicitResult)
	},
}}

var elicitation = feature{
	"elicitation", "elicitation/create",
	ids.ElicitationCapabilityDeclared, ids.ElicitationCapabilityHonoured, ids.ElicitationRequestNested,
	ids.LifecycleCapabilityClientRefusesElicitation,
}

// The members of the definitions of client/elicitation#supported-schema-types,
// and those of JSON Schema that change what has to be shown or checked.
var (
	objectMembers  = []string{"type", "properties", "required"}
	stringMembers  = []string{"type", "title", "description", "minLength", "maxLength", "format"}
	enumMembers    = []string{"type", "title", "description", "enum", "enumNames"}
	numberMembers  = []string{"type", "title", "description", "minimum", "maximum"}
	booleanMembers = []string{"type", "title", "description", "default"}

	advanced = []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then",
		"else", "const", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "patternProperties",
		"propertyNames", "minProperties", "maxProperties", "dependencies", "dependentRequired", "dependentSchemas",
		"unevaluatedProperties"}
	// ornaments do not change what a form as a whole accepts, which is any object.
	ornaments = []string{"$schema", "$id", "title", "description", "additionalProperties"}

	formats = []string{"email", "uri", "date", "date-time"}
)

func judgeElicitRequest(x *Exchange, rec *Recorder) {
	e := x.Request
	message, _ := wire.At(e.Msg.Params, "message").(string)
	requested, ok := wire.At(e.Msg.Params, "requestedSchema").(map[string]any)
	if !ok {
		return // the schema of the message judges it
	}
	judgeMembers("the requested schema", requested, objectMembers, e, rec)
	properties, _ := requested["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	for _, name := range names {
		if property, ok := properties[name].(map[string]any); ok {
			judgeProperty(name, property, e, rec)
		}
	}
	judgeSensitive(message, properties, names, e, rec)
}

func judgeProperty(name string, property map[string]any, e *wire.Event, rec *Recorder) {
	about := "property " + wire.Quote(name, 60)
	kind, _ := property["type"].(string)
	nested := composite(property)
	rec.Check(!nested, ids.ElicitationSchemaFlat, wire.Server, about+" is an object or an array", e)
	if nested {
		return
	}
	members := stringMembers
	_, choice := property["enum"]
	switch {
	case kind == "string" && choice:
		members = enumMembers
		judgeEnum(about, property, e, rec)
	case kind == "string":
	case kind == "number" || kind == "integer":
		members = numberMembers
	case kind == "boolean":
		members = booleanMembers
	default:
		return // the schema of the message judges it
	}
	rec.Pass(ids.ElicitationSchemaPrimitiveTypes, wire.Server)
	if format, ok := property["format"].(string); ok && kind == "string" && slices.Contains(formats, format) {
		rec.Pass(ids.ElicitationSchemaFormats, wire.Server)
	}
	judgeMembers(about, property, members, e, rec)
}

// composite reports whether a property is an object or an array.
func composite(property any) bool {
	kind := wire.At(property, "type")
	return kind == "object" || kind == "array" || wire.At(property, "properties") != nil ||
		wire.At(property, "items") != nil
}

// judgeMembers judges that a schema has no members but those of its definition.
func judgeMembers(about string, s map[string]any, known []string, e *wire.Event, rec *Recorder) {
	const id = ids.ElicitationSchemaNoAdvanced
	clean := true
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch {
		case slices.Contains(known, name):
		case known[1] == "properties" && slices.Contains(ornaments, name):
			rec.Note(id, wire.Server, "requested schemas have the member "+name+", which the definition does not have")
		case slices.Contains(advanced, name):
			clean = false
			rec.Fail(id, wire.Server, about+" uses "+wire.Quote(name, 60), e)
		case name != "properties" && name != "items":
			clean = false
			rec.Warn(id, wire.Server, about+" has the member "+wire.Quote(name, 60)+", which its definition lacks", e)
		}
	}
	if clean {
		rec.Pass(id, wire.Server)
	}
}

func judgeEnum(about string, property map[string]any, e *wire.Event, rec *Recorder) {
	values, ok := property["enum"].([]any)
	names, named := property["enumNames"].([]any)
	if ok && named {
		rec.Check(len(values) == len(names), ids.ElicitationSchemaEnumNames, wire.Server,
			fmt.Sprintf("%s has %d enumNames for %d values", about, len(names), len(values)), e)
	}
	// The definition of a string leaves room for any further member, so that the schema of the message finds nothing
	// (schema#enumschema).
	for _, member := range []string{"enum", "enumNames"} {
		if v, has := property[member]; has && !texts(v) {
			rec.Warn(ids.ElicitationSchemaNoAdvanced, wire.Server,
				about+" has the member "+wire.Quote(member, 60)+", which is not a list of strings", e)
		}
	}
}

// texts reports whether a value is an array of strings.
func texts(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(v any) bool { _, is := v.(string); return !is })
}

func judgeElicitResult(x *Exchange, rec *Recorder) {
	requested, _ := wire.At(x.Request.Msg.Params, "requestedSchema").(map[string]any)
	fractional := fractionalBounds(requested)
	result := x.Result()
	if result == nil {
		if e := x.Response.Msg.Error; fractional && e != nil && e.Code == -32602 {
			rec.Fail(ids.ElicitationSchemaNumberBounds, wire.Client,
				"a request whose numbers have fractional bounds was refused", x.Events()...)
		}
		return
	}
	content, has := result["content"]
	switch result["action"] {
	case "accept":
		rec.Pass(ids.ElicitationActionValues, wire.Client)
		rec.Check(has || len(wire.Items(requested, "required")) == 0, ids.ElicitationContentWithAccept, wire.Client,
			"content is missing although the requested schema has required members", x.Events()...)
		if object, ok := content.(map[string]any); ok {
			judgeElicited(x, requested, object, fractional, rec)
		}
	case "decline", "cancel":
		rec.Pass(ids.ElicitationActionValues, wire.Client)
		rec.Check(!has, ids.ElicitationContentOnlyWithAccept, wire.Client,
			"the result of action "+wire.Show(result["action"])+" has content", x.Events()...)
	}
}

func judgeElicited(x *Exchange, requested, content map[string]any, fractional bool, rec *Recorder) {
	primitive := true
	for _, v := range content {
		switch v.(type) {
		case nil, []any, map[string]any:
			primitive = false // the schema of the message judges it
		}
	}
	if primitive {
		rec.Pass(ids.ElicitationContentPrimitiveValues, wire.Client)
	}
	reason, outside := unfitting(requested, content)
	for _, id := range []string{ids.ElicitationContentMatchesSchema, ids.ElicitationSecurityValidateContent} {
		rec.Check(reason == "", id, wire.Client, reason, x.Events()...)
	}
	if fractional {
		rec.Check(!outside, ids.ElicitationSchemaNumberBounds, wire.Client, reason, x.Events()...)
	}
}

// unfitting says what in elicited content does not fit the requested schema,
// or "", and whether it lies outside the bounds of a number.
func unfitting(requested, content map[string]any) (reason string, outside bool) {
	properties, _ := requested["properties"].(map[string]any)
	for _, r := range wire.Items(requested, "required") {
		name, ok := r.(string)
		if !ok || composite(properties[name]) {
			continue // no form can have it
		}
		if _, has := content[name]; !has {
			return "the required property " + wire.Quote(name, 60) + " is missing", false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue // further members are not excluded
		}
		if reason, outside := unfit(property, content[name]); reason != "" {
			return "property " + wire.Quote(name, 60) + " " + reason, outside
		}
	}
	return "", false
}

func unfit(property map[string]any, v any) (reason string, outside bool) {
	if choices, ok := property["enum"].([]any); ok &&
		!slices.ContainsFunc(choices, func(c any) bool { return same(c, v) }) {
		return "is not one of the values of its enum", false
	}
	switch property["type"] {
	case "string":
		text, ok := v.(string)
		if !ok {
			return "is " + wire.TypeName(v) + ", not a string", false
		}
		return unfitText(property, text), false
	case "boolean":
		if _, ok := v.(bool); !ok {
			return "is " + wire.TypeName(v) + ", not a boolean", false
		}
	case "number", "integer":
		n, ok := number(v)
		if !ok {
			return "is " + wire.TypeName(v) + ", not a number that can be read", false
		}
		if property["type"] == "integer" && !n.IsInt() {
			return "is not an integer", false
		}
		least, bound := number(property["minimum"])
		most, limit := number(property["maximum"])
		if bound && n.Cmp(least) < 0 || limit && n.Cmp(most) > 0 {
			return "is not between its minimum and maximum", true
		}
	}
	return "", false
}

func unfitText(property map[string]any, text string) string {
	length := big.NewRat(int64(utf8.RuneCountInString(text)), 1)
	if least, ok := number(property["minLength"]); ok && length.Cmp(least) < 0 {
		return "is shorter than its minLength"
	}
	if most, ok := number(property["maxLength"]); ok && length.Cmp(most) > 0 {
		return "is longer than its maxLength"
	}
	ok := true
	switch property["format"] {
	case "email":
		_, err := mail.ParseAddress(text)
		ok = err == nil && !strings.ContainsAny(quoted.ReplaceAllString(text, "q"), "<> ")
	case "uri":
		ok = schema.CheckFormat("uri", text) == ""
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		ok = err == nil
	case "date-time":
		// The library does not know leap seconds.
		_, err := time.Parse(time.RFC3339, strings.Replace(strings.ToUpper(text), ":60", ":59", 1))
		ok = err == nil
	}
	if !ok {
		return "does not have the format " + wire.Show(property["format"])
	}
	return ""
}

// quoted matches a quoted string, which may be the local part of an address
// (RFC 5321 section 4.1.2).
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// fractionalBounds reports whether a requested number has a bound with a fraction.
func fractionalBounds(requested map[string]any) bool {
	properties, _ := requested["properties"].(map[string]any)
	for _, p := range properties {
		for _, name := range []string{"minimum", "maximum"} {
			if n, ok := number(wire.At(p, name)); ok && !n.IsInt() {
				return true
			}
		}
	}
	return false
}
