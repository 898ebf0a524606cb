package ledger

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// redact takes secrets out of a run: out of every text in it but those that the
// catalogue and mcpconform itself give, whose fields are tagged redact:"-". So a new
// field is redacted unless somebody decides otherwise.
func redact(r *transport.Redactor, run *result.Run) {
	clean(r, reflect.ValueOf(run).Elem())
	if run.Offer != nil {
		run.Offer.Shorten() // a secret that was cut in two would not be known
	}
}

var rawJSON = reflect.TypeFor[json.RawMessage]()

func clean(r *transport.Redactor, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.String(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			clean(r, v.Elem())
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.Tag.Get("redact") != "-" && field.IsExported() {
				clean(r, value)
			}
		}
	case reflect.Slice:
		if v.Type() == rawJSON {
			if text := r.Bytes(v.Bytes()); json.Valid(text) {
				v.SetBytes(text)
			} else {
				v.SetZero()
			}
			return
		}
		if list, ok := v.Interface().([]string); ok {
			v.Set(reflect.ValueOf(slices.Clone(list))) // which the caller may still use
		}
		for i := range v.Len() {
			clean(r, v.Index(i))
		}
	}
}
