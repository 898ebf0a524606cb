package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestDecode(t *testing.T) {
	num := func(s string) any { return json.Number(s) }
	for _, c := range []struct {
		text   string
		want   any
		issues []wire.Issue
	}{
		{"null", nil, nil},
		{" \t\r\n true \n", true, nil},
		{"-0.50E+01", num("-0.50E+01"), nil},
		{"1e999999999", num("1e999999999"), nil},
		{`"a\"\\\/\b\f\n\r\té"`, "a\"\\/\b\f\n\r\té", nil},
		{`"\ud83d\uDE00"`, "😀", nil},
		{`"\u0000"`, "\x00", nil},
		{"\"\x7f\"", "\x7f", nil},
		{`{"a":[1,{"b":{}}],"c":[]}`, map[string]any{
			"a": []any{num("1"), map[string]any{"b": map[string]any{}}}, "c": []any{},
		}, nil},
		{`{"":{"a/b~c":[0,{"x":1,"x":2}]}}`,
			map[string]any{"": map[string]any{"a/b~c": []any{num("0"), map[string]any{"x": num("2")}}}},
			[]wire.Issue{{Code: wire.DuplicateMember, Pointer: "//a~1b~0c/1/x", Detail: `member "x" occurs more than once`}}},
		// Two spellings of one name are one name.
		{`{"x":1,"\u0078":2}`, map[string]any{"x": num("2")},
			[]wire.Issue{{Code: wire.DuplicateMember, Pointer: "/x", Detail: `member "x" occurs more than once`}}},
		{"{\"a\":\"x\xffy\"}", map[string]any{"a": "x\uFFFDy"},
			[]wire.Issue{{Code: wire.InvalidUTF8, Pointer: "/a", Detail: "bytes 6 to 9 are not UTF-8"}}},
		// A surrogate half that is encoded in UTF-8, and an overlong slash.
		{"\"\xed\xa0\x80\"", "\uFFFD", []wire.Issue{{Code: wire.InvalidUTF8, Detail: "bytes 1 to 4 are not UTF-8"}}},
		{"\"\\n\xc0\xaf\"", "\n\uFFFD", []wire.Issue{{Code: wire.InvalidUTF8, Detail: "bytes 3 to 5 are not UTF-8"}}},
		{`["\ud83d"]`, []any{"\uFFFD"},
			[]wire.Issue{{Code: wire.LoneSurrogate, Pointer: "/0", Detail: `\uD83D lacks its other half`}}},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD", []wire.Issue{
			{Code: wire.LoneSurrogate, Detail: `\uDE00 lacks its other half`},
			{Code: wire.LoneSurrogate, Detail: `\uD83D lacks its other half`},
		}},
		{`"\ud83dA"`, "\uFFFDA", []wire.Issue{{Code: wire.LoneSurrogate, Detail: `\uD83D lacks its other half`}}},
		{"\xEF\xBB\xBF{}", map[string]any{},
			[]wire.Issue{{Code: wire.ByteOrderMark, Detail: "the text starts with a byte order mark"}}},
	} {
		got, issues, err := wire.Decode([]byte(c.text))
		if err != nil {
			t.Errorf("Decode(%q): %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Decode(%q): (-want +got)\n%s", c.text, diff)
		}
		if diff := cmp.Diff(c.issues, issues); diff != "" {
			t.Errorf("issues of %q: (-want +got)\n%s", c.text, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		reason string
	}{
		{"", 0, "the text ends where a value is due"},
		{"\xEF\xBB\xBF", 3, "the text ends where a value is due"},
		{"\x00", 0, "unexpected '\\x00'"},
		{"{}\x00", 2, "there is more after the end of the value"},
		{"{}{}", 2, "there is more after the end of the value"},
		{"Listening on stdio", 0, "unexpected 'L'"},
		{"nul", 0, "unknown word"},
		{"truE", 0, "unknown word"},
		{"NaN", 0, "unexpected 'N'"},
		{"'a'", 0, "unexpected '\\''"},
		{"\u2028 1", 0, "unexpected '\\u2028'"},
		{"\xff", 0, "unexpected '�'"},
		{"+1", 0, "unexpected '+'"},
		{"-", 1, "a digit is due"},
		{"01", 1, "there is more after the end of the value"},
		{"1.", 2, "a digit is due after the point"},
		{".5", 0, "unexpected '.'"},
		{"1e+", 3, "a digit is due in the exponent"},
		{"[1,]", 3, "unexpected ']'"},
		{"[1 2]", 3, "a comma or ] is due"},
		{"[", 1, "the text ends where a value is due"},
		{`{"a"}`, 4, "a colon is due"},
		{`{"a":1,}`, 7, "a member name is due"},
		{`{a:1}`, 1, "a member name is due"},
		{`{"a":1 "b":2}`, 7, "a comma or } is due"},
		{`{"a":1`, 6, "a comma or } is due"},
		{`"abc`, 4, "the text ends inside a string"},
		{"\"a\nb\"", 2, "unescaped control character 0x0A in a string"},
		{"\"\\n\x00\"", 3, "unescaped control character 0x00 in a string"},
		{`"\`, 2, "the text ends inside an escape"},
		{`"\x41"`, 2, `unknown escape \x`},
		{`"\u12`, 3, "the text ends inside an escape"},
		{`"\u+123"`, 3, "four hexadecimal digits are due"},
		{`"\ud800\u00g0"`, 9, "four hexadecimal digits are due"},
		{`"\n`, 3, "the text ends inside a string"},
		{"[1] // comment", 4, "there is more after the end of the value"},
	} {
		v, _, err := wire.Decode([]byte(c.text))
		var syntax *wire.SyntaxError
		if !errors.As(err, &syntax) || v != nil {
			t.Errorf("Decode(%q) = %v, %v; want nothing and a syntax error", c.text, v, err)
			continue
		}
		if diff := cmp.Diff(wire.SyntaxError{Offset: c.offset, Reason: c.reason}, *syntax); diff != "" {
			t.Errorf("Decode(%q): (-want +got)\n%s", c.text, diff)
		}
	}
}

func TestDecodeBounds(t *testing.T) {
	nested := func(open, inner, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + inner + strings.Repeat(end, n))
	}
	for _, c := range []struct {
		name string
		text []byte
		want error
	}{
		{"deepest array", nested("[", "", "]", wire.MaxDepth), nil},
		{"array too deep", nested("[", "", "]", wire.MaxDepth+1), wire.ErrDepth},
		{"deepest object", nested(`{"a":`, "1", "}", wire.MaxDepth), nil},
		{"object too deep", nested(`{"a":`, "1", "}", wire.MaxDepth+1), wire.ErrDepth},
		{"a flood of brackets", bytes.Repeat([]byte("["), 1<<20), wire.ErrDepth},
		{"most values", []byte("[" + strings.Repeat("0,", wire.MaxValues-2) + "0]"), nil},
		{"too many values", []byte("[" + strings.Repeat("0,", wire.MaxValues-1) + "0]"), wire.ErrValues},
	} {
		if _, _, err := wire.Decode(c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// Hostile texts must not be repeated in what is said about them.
func TestIssuesAreBounded(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	_, issues, err := wire.Decode([]byte(`{"` + name + `":[` + strings.Repeat(`"\ud800",`, 100) + `0]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(issues) == 0 || len(issues) > 50 {
		t.Errorf("%d issues are kept", len(issues))
	}
	if n := len(issues[0].Pointer); n > 200 {
		t.Errorf("a pointer has %d bytes", n)
	}
	for what, text := range map[string]string{
		"Quote": wire.Quote(name, 60), "Show of a string": wire.Show(name), "Show of a number": wire.Show(json.Number(strings.Repeat("1", 1<<20))),
		"Show of an array": wire.Show([]any{name, name}),
	} {
		if len(text) > 200 {
			t.Errorf("%s has %d bytes", what, len(text))
		}
	}
}

// FuzzDecode compares with encoding/json, which differs on purpose in a byte
// order mark, duplicate names, bytes that are not UTF-8, and bounds.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, `[1.0,-0,1e5,"\ud83d\ude00\ud800"]`, "\"\\u0000\x7f\"", "{\"a\":\xff}", "01", `{"a":{"b":[null,true,false]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, issues, err := wire.Decode(text)
		if errors.Is(err, wire.ErrDepth) || errors.Is(err, wire.ErrValues) || !utf8.Valid(text) {
			return
		}
		if err != nil && len(text) > 0 && err.(*wire.SyntaxError).Offset > len(text) {
			t.Errorf("%q: offset beyond the end: %v", text, err)
		}
		for _, i := range issues {
			if i.Code == wire.DuplicateMember || i.Code == wire.ByteOrderMark {
				return
			}
		}
		var want any
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		wantErr := error(nil)
		if !json.Valid(text) {
			wantErr = errors.New("not valid")
		} else {
			wantErr = dec.Decode(&want)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", text, err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, encoding/json: %#v", text, got, want)
		}
	})
}
