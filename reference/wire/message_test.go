package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func codes(m *wire.Message) []wire.IssueCode {
	var list []wire.IssueCode
	for _, i := range m.Issues {
		list = append(list, i.Code)
	}
	return list
}

// messages has a case for each issue code, and the well-formed kinds.
var messages = []struct {
	text   string
	kind   wire.Kind
	issues []wire.IssueCode
}{
	{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, wire.Request, nil},
	{`{"jsonrpc":"2.0","id":"","method":"ping","params":{}}`, wire.Request, nil},
	{`{"jsonrpc":"2.0","id":-1.0e0,"method":"ping","extra":[]}`, wire.Request, nil},
	{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, wire.Notification, nil},
	{`{"jsonrpc":"2.0","id":1,"result":{}}`, wire.Result, nil},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":null}}`, wire.ErrorResponse, nil},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":1e30,"message":""}}`, wire.ErrorResponse, nil},

	{`Server running`, wire.Invalid, []wire.IssueCode{wire.NotJSON}},
	{``, wire.Invalid, []wire.IssueCode{wire.NotJSON}},
	{strings.Repeat("[", 600), wire.Invalid, []wire.IssueCode{wire.TooDeep}},
	{"[" + strings.Repeat("0,", wire.MaxValues) + "0]", wire.Invalid, []wire.IssueCode{wire.TooLarge}},
	{`{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`, wire.Result, []wire.IssueCode{wire.DuplicateMember}},
	{`{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1,"b":1}}}`, wire.Result, []wire.IssueCode{wire.DuplicateMember}},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xfe\"}}", wire.Result, []wire.IssueCode{wire.InvalidUTF8}},
	{`{"jsonrpc":"2.0","id":1,"result":{"\udead":1}}`, wire.Result, []wire.IssueCode{wire.LoneSurrogate}},
	{"\xEF\xBB\xBF" + `{"jsonrpc":"2.0","id":1,"result":{}}`, wire.Result, []wire.IssueCode{wire.ByteOrderMark}},

	{`"ping"`, wire.Invalid, []wire.IssueCode{wire.NotObject}},
	{`null`, wire.Invalid, []wire.IssueCode{wire.NotObject}},
	{`[]`, wire.Batch, []wire.IssueCode{wire.IsBatch}},
	{`{"id":1,"result":{}}`, wire.Result, []wire.IssueCode{wire.JSONRPCMissing}},
	{`{"jsonrpc":2.0,"id":1,"result":{}}`, wire.Result, []wire.IssueCode{wire.JSONRPCWrong}},
	{`{"jsonrpc":"2","id":1,"result":{}}`, wire.Result, []wire.IssueCode{wire.JSONRPCWrong}},
	{`{"jsonrpc":"2.0","result":{}}`, wire.Result, []wire.IssueCode{wire.IDMissing}},
	{`{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.IDMissing}},
	{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, wire.Request, []wire.IssueCode{wire.IDNull}},
	{`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.IDNull}},
	{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, wire.Request, []wire.IssueCode{wire.IDType}},
	{`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, wire.Request, []wire.IssueCode{wire.IDType}},
	{`{"jsonrpc":"2.0","id":true,"result":{}}`, wire.Result, []wire.IssueCode{wire.IDType}},
	{`{"jsonrpc":"2.0","id":1,"method":7}`, wire.Invalid, []wire.IssueCode{wire.MethodType}},
	{`{"jsonrpc":"2.0","id":1,"method":null}`, wire.Invalid, []wire.IssueCode{wire.MethodType}},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, wire.Request, []wire.IssueCode{wire.ParamsType}},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, wire.Request, []wire.IssueCode{wire.ParamsType}},
	{`{"jsonrpc":"2.0","id":1,"result":null}`, wire.Result, []wire.IssueCode{wire.ResultType}},
	{`{"jsonrpc":"2.0","id":1,"result":[]}`, wire.Result, []wire.IssueCode{wire.ResultType}},
	{`{"jsonrpc":"2.0","id":1,"error":"boom"}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorType}},
	{`{"jsonrpc":"2.0","id":1,"error":null}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorType}},
	{`{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorCodeMissing}},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":"-32601","message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorCodeType}},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorCodeType}},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorTextMissing}},
	{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}`, wire.ErrorResponse, []wire.IssueCode{wire.ErrorTextType}},
	{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, wire.Result, []wire.IssueCode{wire.BothOutcomes}},
	{`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}`, wire.ErrorResponse, []wire.IssueCode{wire.BothOutcomes}},
	{`{"jsonrpc":"2.0","id":1}`, wire.Invalid, []wire.IssueCode{wire.NoOutcome}},
	{`{}`, wire.Invalid, []wire.IssueCode{wire.JSONRPCMissing, wire.NoOutcome}},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, wire.Result, []wire.IssueCode{wire.MixedEnvelope}},
	{`{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, wire.Request, []wire.IssueCode{wire.NotificationID}},
}

func TestParse(t *testing.T) {
	seen := make(map[wire.IssueCode]bool)
	for _, c := range messages {
		m := wire.Parse([]byte(c.text))
		name := wire.Quote(c.text, 100)
		if m.Kind != c.kind {
			t.Errorf("%s is a %v, want a %v", name, m.Kind, c.kind)
		}
		if diff := cmp.Diff(c.issues, codes(m)); diff != "" {
			t.Errorf("issues of %s: (-want +got)\n%s", name, diff)
		}
		for _, i := range m.Issues {
			seen[i.Code] = true
			if !m.Has(wire.NotJSON, i.Code) || i.Detail == "" || len(i.Detail) > 300 {
				t.Errorf("%s: issue %+v", name, i)
			}
		}
		if string(m.Raw) != c.text {
			t.Errorf("%s: the bytes were changed", name)
		}
	}
	for _, code := range []wire.IssueCode{
		wire.NotJSON, wire.TooDeep, wire.TooLarge, wire.DuplicateMember, wire.InvalidUTF8, wire.LoneSurrogate, wire.ByteOrderMark, wire.NotObject,
		wire.IsBatch, wire.JSONRPCMissing, wire.JSONRPCWrong, wire.IDMissing, wire.IDNull, wire.IDType, wire.MethodType, wire.ParamsType,
		wire.ResultType, wire.ErrorType, wire.ErrorCodeMissing, wire.ErrorCodeType, wire.ErrorTextMissing, wire.ErrorTextType,
		wire.BothOutcomes, wire.NoOutcome, wire.MixedEnvelope, wire.NotificationID,
	} {
		if !seen[code] {
			t.Errorf("no case has the issue %s", code)
		}
	}
}

// TestParseReadsOn tests that Parse keeps the readable parts of a broken message.
func TestParseReadsOn(t *testing.T) {
	m := wire.Parse([]byte(`{"jsonrpc":"1.0","id":"a","method":"tools/call","params":{"name":"x"}}`))
	if m.Kind != wire.Request || m.ID.String() != `"a"` || m.Method != "tools/call" || wire.At(m.Params, "name") != "x" {
		t.Errorf("the request was read as %+v", m)
	}
	m = wire.Parse([]byte(`{"id":7,"error":{"code":-32000.0,"message":5,"data":{"k":[1]}}}`))
	want := &wire.Error{Code: -32000, HasCode: true, Data: map[string]any{"k": []any{json.Number("1")}}}
	if diff := cmp.Diff(want, m.Error); diff != "" || m.ID.Key() != "7" {
		t.Errorf("the error was read with id %s as (-want +got)\n%s", m.ID, diff)
	}
	m = wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":9223372036854775808,"message":"m"}}`))
	if m.Error.HasCode || len(m.Issues) > 0 {
		t.Errorf("a code that does not fit was read as %+v with %v", m.Error, m.Issues)
	}
	m = wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"error":[]}`))
	if m.Error == nil || !m.IsResponse() {
		t.Errorf("an error of another type was read as %+v", m)
	}
}

func TestParseBatch(t *testing.T) {
	m := wire.Parse([]byte(` [{"jsonrpc":"2.0","id":1,"method":"ping"}, 7, [{}], {"jsonrpc":"2.0","method":"<x>"}]`))
	var got []string
	for _, b := range m.Batch {
		got = append(got, fmt.Sprintf("%v %v %s", b.Kind, codes(b), b.Raw))
	}
	want := []string{
		`request [] {"id":1,"jsonrpc":"2.0","method":"ping"}`, `invalid message [not-object] 7`,
		`invalid message [not-object] [{}]`, `notification [] {"jsonrpc":"2.0","method":"<x>"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	m = wire.Parse([]byte("[" + strings.Repeat("{},", 5000) + "{}]"))
	if len(m.Batch) == 0 || len(m.Batch) > 1000 {
		t.Errorf("%d members of a batch are read", len(m.Batch))
	}
}

func TestIDs(t *testing.T) {
	id := func(text string) wire.ID {
		v, _, err := wire.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return wire.ReadID(v)
	}
	for _, c := range []struct {
		a, b      string
		equal     bool
		resembles bool
	}{
		{`1`, `1`, true, true},
		{`1`, `1.0`, true, true},
		{`1`, `1e0`, true, true},
		{`100`, `1E+2`, true, true},
		{`100`, `10000e-2`, true, true},
		{`-120`, `-1.2e2`, true, true},
		{`0`, `-0`, true, true},
		{`0`, `-0.0e5`, true, true},
		{`0`, `0e999999999999999999999`, true, true},
		{`7`, `7e0000000000000000000000000000`, true, true},
		{`1e1000000000`, `10e999999999`, true, true},
		{`9007199254740993`, `9007199254740992`, false, false},
		{`1`, `-1`, false, false},
		{`1`, `"1"`, false, true},
		{`"1"`, `"1"`, true, true},
		{`"1"`, `"1.0"`, false, false},
		{`"<é>"`, `"\u003c\u00e9>"`, true, true},
		{`"a"`, `"A"`, false, false},
		{`""`, `""`, true, true},
		{`1`, `null`, false, false},
		{`"null"`, `null`, false, false},
	} {
		a, b := id(c.a), id(c.b)
		if got := a.Key() == b.Key(); got != c.equal {
			t.Errorf("%s and %s are equal: %t; keys %s and %s", c.a, c.b, got, a.Key(), b.Key())
		}
		if got := a.Resembles(b); got != c.resembles || b.Resembles(a) != got {
			t.Errorf("%s and %s resemble each other: %t", c.a, c.b, got)
		}
		if a.Usable() && b.Usable() && (a.Loose() == b.Loose()) != c.resembles {
			t.Errorf("%s and %s are loosely %s and %s", c.a, c.b, a.Loose(), b.Loose())
		}
	}
	for text, usable := range map[string]bool{
		`1`: true, `"x"`: true, `""`: true, `1.0`: true, `1e400`: true, `1e999999999999`: true, `null`: false, `1.5`: false,
		`1e-1`: false, `1e-999999999999`: false, `true`: false, `{}`: false, `[]`: false,
	} {
		if got := id(text); got.Usable() != usable || !got.Present() || got.Null() != (text == "null") {
			t.Errorf("id %s: usable %t, present %t, null %t", text, got.Usable(), got.Present(), got.Null())
		}
	}
	if got := id(`1.0`).String(); got != "1.0" {
		t.Errorf("the spelling 1.0 became %s", got)
	}
	if (wire.ID{}).Present() || (wire.ID{}).Usable() || (wire.ID{}).Loose() != "" {
		t.Error("an absent id is present")
	}
	if got := wire.StringID("a\"<").String(); got != `"a\"<"` {
		t.Errorf("StringID spells %s", got)
	}
	if got, want := wire.StringID("a\u2028b\\u2028\u2029").String(), "\"a\u2028b\\\\u2028\u2029\""; got != want {
		t.Errorf("StringID spells %q, not %q", got, want)
	}
	if got := wire.IntID(-7).Key(); got != "-7" {
		t.Errorf("IntID(-7) has the key %s", got)
	}
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "null"}, {true, "true"}, {json.Number("1.50"), "1.50"}, {"a\n", `"a\n"`}, {strings.Repeat("é", 81), `"` + strings.Repeat("é", 80) + `"…`},
		{map[string]any{"a": []any{"<", json.Number("1")}}, `{"a":["<",1]}`}, {7, "7"},
	} {
		if got := wire.Show(c.v); got != c.want {
			t.Errorf("Show(%v) = %s, want %s", c.v, got, c.want)
		}
	}
	var names []string
	for _, v := range []any{nil, false, "", json.Number("1"), []any{}, map[string]any{}, struct{}{}} {
		names = append(names, wire.TypeName(v))
	}
	want := []string{"null", "a boolean", "a string", "a number", "an array", "an object", "a struct {}"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAt(t *testing.T) {
	v := map[string]any{"a": map[string]any{"b": 1}, "c": nil}
	if wire.At(v, "a", "b") != 1 || wire.At(v, "a", "x") != nil || wire.At(v, "c", "d") != nil || wire.At(nil, "a") != nil {
		t.Error("a path leads to the wrong value")
	}
	if wire.At(7) != 7 {
		t.Error("the empty path leads elsewhere")
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range messages {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text))
		}
	}
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},[]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := wire.Parse(text)
		if !bytes.Equal(m.Raw, text) {
			t.Fatalf("%q: the bytes were changed", text)
		}
		if m.Kind == wire.Invalid && len(m.Issues) == 0 {
			t.Errorf("%q is invalid without an issue", text)
		}
		if (m.Kind == wire.ErrorResponse) != (m.Error != nil) {
			t.Errorf("%q is a %v with the error %v", text, m.Kind, m.Error)
		}
		if m.ID.Usable() && !m.ID.Resembles(wire.Parse(fmt.Appendf(nil, `{"id":%s}`, m.ID)).ID) {
			t.Errorf("%q: the id %s does not survive", text, m.ID)
		}
		for _, b := range m.Batch {
			if !json.Valid(b.Raw) {
				t.Errorf("%q: member %q", text, b.Raw)
			}
		}
	})
}

// message1kB is an answer to tools/list of about 1 kB.
const message1kB = `{"jsonrpc":"2.0","id":4,"result":{"tools":[
{"name":"forecast","title":"Weather forecast","description":"Forecast for one place over some days","inputSchema":{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["place"]},"outputSchema":{"type":"object","properties":{"celsius":{"type":"number"},"rain":{"type":"boolean"}},"required":["celsius"]},"annotations":{"readOnlyHint":true,"openWorldHint":true}},
{"name":"search","description":"Full text search in the documents of the workspace","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}},
{"name":"delete","description":"Deletes one document for good","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},"annotations":{"destructiveHint":true,"idempotentHint":true}}],"nextCursor":"b2Zmc2V0PTIw","_meta":{"example.org/page":1}}}`

func BenchmarkParse(b *testing.B) {
	raw := []byte(message1kB)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if m := wire.Parse(raw); len(m.Issues) > 0 {
			b.Fatal(m.Issues)
		}
	}
}

// BenchmarkParseEscapes reads a tool's result whose text is JSON.
func BenchmarkParseEscapes(b *testing.B) {
	text, err := json.Marshal(strings.Repeat(message1kB, 20))
	if err != nil {
		b.Fatal(err)
	}
	raw := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":%s}]}}`, text)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if m := wire.Parse(raw); len(m.Issues) > 0 {
			b.Fatal(m.Issues)
		}
	}
}

// BenchmarkStandardLibrary is what BenchmarkParse is to be compared with.
func BenchmarkStandardLibrary(b *testing.B) {
	raw := []byte(message1kB)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		var v any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			b.Fatal(err)
		}
	}
}

// Value is the whole text, although most of it is not kept.
func TestValue(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.0,"method":"ping","params":{}}`,
		`{"method":"a \"b\"","params":{"x":[1,{"y":null}]},"id":"\u00e9\n\u2028\\","jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"b"}}`,
		`{"jsonrpc":"2.0","id":"","result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"text":"` + strings.Repeat("x", 100) + `"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"params":{"text":"` + strings.Repeat("x", 100) + `"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"more":1}`,
		`{"jsonrpc":"2.0","id":7,"result":[]}`,
		`{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32601.0,"message":"m","data":null,"more":1}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`,
		`{"id":1,"method":"ping"}`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{}`, `"text"`, `null`, ``, `{"jsonrpc":"2.0","id":1,"method":"ping"`,
	} {
		want, _, _ := wire.Decode([]byte(text))
		trace := wire.NewTrace(wire.DefaultLimits)
		for range 2 { // the second may share with the first
			e, err := trace.Connect("stdio", "").Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Raw: []byte(text)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, e.Msg.Value()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", text, diff)
			}
			payload, known := e.Msg.Payload()
			if known && payload != "" && !strings.Contains(text, `:`+payload) {
				t.Errorf("%s says %s", text, payload)
			}
		}
		if diff := cmp.Diff(want, wire.Parse([]byte(text)).Value()); diff != "" {
			t.Errorf("%s without a trace (-want +got)\n%s", text, diff)
		}
	}
}

func TestEqualObjectsAreShared(t *testing.T) {
	page := func(cursor, item string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + item + `,` + item + `],"nextCursor":"` + cursor + `"}}`)
	}
	items := func(log *wire.Log, raw []byte) []any {
		t.Helper()
		e, err := log.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: raw})
		if e == nil {
			t.Fatal(err)
		}
		if want, _, _ := wire.Decode(raw); !cmp.Equal(want, e.Msg.Value()) {
			t.Errorf("%s is read as %v", raw, e.Msg.Value())
		}
		list, _ := wire.At(e.Msg.Result, "tools").([]any)
		return list
	}
	same := func(a, b any) bool { return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() }
	const item, twice = `{"name":"t","inputSchema":{"type":"object"}}`, `{"name":"t","name":"u"}`
	trace := wire.NewTrace(wire.DefaultLimits)
	first := items(trace.Connect("stdio", ""), page("a", item))
	second := items(trace.Connect("stdio", ""), page("b", item))
	if !same(first[0], first[1]) || !same(first[0], second[0]) {
		t.Error("equal objects are held twice")
	}
	// What is wrong about an object is said of each.
	for range 2 {
		raw := page("a", twice)
		if m := trace.Connect("stdio", "").Parse(raw); !m.Has(wire.DuplicateMember) || len(m.Issues) != 2 {
			t.Errorf("%s has the faults %v", raw, m.Issues)
		}
	}
	stopped := trace.Connect("stdio", "")
	stopped.Stop("enough")
	if last := items(stopped, page("c", item)); same(first[0], last[0]) || same(last[0], last[1]) {
		t.Error("a message that is not kept shares objects with the trace, which would keep it")
	}
}
