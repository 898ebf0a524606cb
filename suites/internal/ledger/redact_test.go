package ledger

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// No field of a run, now or later, keeps a secret, unless its tag says that no target can write it.
func TestRedact(t *testing.T) {
	r := transport.NewRedactor(nil, "")
	const secret = "hunter22-and-more"
	r.Add(secret)
	run := new(result.Run)
	filled := fill(reflect.ValueOf(run).Elem(), secret)
	if filled < 50 {
		t.Fatalf("only %d texts were filled in", filled)
	}
	redact(r, run)
	left(t, reflect.ValueOf(run).Elem(), "Run", secret)
}

// fill writes a text into every field and returns into how many.
func fill(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return 1
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), text)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				n += fill(value, text)
			}
		}
	case reflect.Slice:
		if v.Type() == rawJSON {
			v.SetBytes([]byte(`{"` + text + `":"` + text + `"}`))
			return 1
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), text)
	}
	return n
}

// left reports the fields that hold a text and are not tagged.
func left(t *testing.T, v reflect.Value, name, text string) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), text) {
			t.Errorf("%s still holds the secret", name)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			left(t, v.Elem(), name, text)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() && field.Tag.Get("redact") != "-" {
				left(t, value, name+"."+field.Name, text)
			}
		}
	case reflect.Slice:
		if v.Type() == rawJSON && strings.Contains(string(v.Bytes()), text) {
			t.Errorf("%s still holds the secret", name)
		}
		for i := range v.Len() {
			left(t, v.Index(i), name, text)
		}
	case reflect.Map, reflect.Interface:
		t.Errorf("%s is a %s, which is not searched for secrets", name, v.Kind())
	}
}

// Secrets are taken out of an offer before it is shortened.
func TestOfferIsRedacted(t *testing.T) {
	r := transport.NewRedactor(nil, "")
	const secret = "hunter22-and-more"
	r.Add(secret)
	schema := json.RawMessage(`{"properties":{"` + secret + `":{"default":"` + secret + `"}}}`)
	run := &result.Run{Offer: &result.Offer{
		Tools: []result.OfferedTool{{
			Name: secret, Title: secret, Description: strings.Repeat("x", 490) + secret, InputSchema: schema, OutputSchema: schema, Annotations: schema,
		}},
		Prompts:      []result.OfferedPrompt{{Name: secret, Arguments: []result.OfferedArgument{{Name: secret}}}},
		Resources:    []result.OfferedResource{{URI: secret, Name: secret, MIMEType: secret}},
		Templates:    []result.OfferedTemplate{{URITemplate: secret, Name: secret}},
		Instructions: strings.Repeat("x", 1990) + secret,
	}}
	redact(r, run)
	text, err := json.Marshal(run.Offer)
	if err != nil || strings.Contains(string(text), secret[:8]) || strings.Count(string(text), transport.Redacted) != 17 {
		t.Errorf("%d times redacted, error %v: %s", strings.Count(string(text), transport.Redacted), err, text)
	}
}
