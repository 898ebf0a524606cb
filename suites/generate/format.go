package generate

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A format makes strings: number k, and before and after what may be repeated to
// reach a length.
type format struct {
	make       func(k int) string
	head, tail string // repeated before the first, after the last character; "" if it cannot be
}

var epoch = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func day(k int) time.Time { return epoch.AddDate(0, 0, k%3000) }

func counted(prefix, suffix string) func(int) string {
	return func(k int) string {
		if k == 0 {
			return prefix + suffix
		}
		return fmt.Sprintf("%s%d%s", prefix, k, suffix)
	}
}

func uuid(k int) string { return fmt.Sprintf("123e4567-e89b-42d3-a456-%012x", 0x426614174000+k) }

// formats are those of draft 2020-12 and what the common generators of schemas
// write besides. Names for numbers are not among them.
var formats = map[string]format{
	"email":                 {make: counted("user", "@example.com"), head: "a"},
	"idn-email":             {make: counted("user", "@example.com"), head: "a"},
	"uri":                   {make: counted("https://example.com/", ""), tail: "a"},
	"url":                   {make: counted("https://example.com/", ""), tail: "a"},
	"iri":                   {make: counted("https://example.com/", ""), tail: "a"},
	"uri-reference":         {make: counted("https://example.com/", ""), tail: "a"},
	"iri-reference":         {make: counted("https://example.com/", ""), tail: "a"},
	"uri-template":          {make: counted("https://example.com/", "{id}"), tail: "a"},
	"date":                  {make: func(k int) string { return day(k).Format(time.DateOnly) }},
	"date-time":             {make: func(k int) string { return day(k).Format(time.RFC3339) }},
	"time":                  {make: func(k int) string { return epoch.Add(time.Duration(k) * time.Second).Format("15:04:05Z07:00") }},
	"duration":              {make: func(k int) string { return fmt.Sprintf("P%dD", k+1) }},
	"uuid":                  {make: uuid},
	"uuid4":                 {make: uuid},
	"guid":                  {make: uuid},
	"ipv4":                  {make: address("192.0.2.1")},
	"ipv6":                  {make: address("2001:db8::1")},
	"hostname":              {make: counted("host", ".example.com")},
	"idn-hostname":          {make: counted("host", ".example.com")},
	"json-pointer":          {make: counted("/a", ""), tail: "a"},
	"relative-json-pointer": {make: counted("1", "/a"), tail: "a"},
	"regex":                 {make: counted("a", ""), tail: "a"},
	"byte":                  {make: encoded(base64.StdEncoding)},
	"base64":                {make: encoded(base64.StdEncoding)},
	"base64url":             {make: encoded(base64.RawURLEncoding)},
	"json-string":           {make: func(k int) string { return fmt.Sprint(k) }, tail: " "},
	"path":                  {make: counted("/tmp/example", ""), tail: "a"},
	"file-path":             {make: counted("/tmp/example", ""), tail: "a"},
	"directory-path":        {make: counted("/tmp/example", ""), tail: "a"},
	"cidrv4":                {make: func(k int) string { return fmt.Sprintf("192.0.%d.0/24", k%256) }},
	"cidrv6":                {make: func(k int) string { return fmt.Sprintf("2001:db8:%x::/48", k%65536) }},
	"ipv4network":           {make: func(k int) string { return fmt.Sprintf("192.0.%d.0/24", k%256) }},
	"ipv6network":           {make: func(k int) string { return fmt.Sprintf("2001:db8:%x::/48", k%65536) }},
	"e164":                  {make: func(k int) string { return fmt.Sprintf("+1202555%04d", 100+k%9000) }},
	"cuid":                  {make: func(k int) string { return fmt.Sprintf("c%024d", k+1) }},
	"cuid2":                 {make: func(k int) string { return fmt.Sprintf("c%023d", k+1) }},
	"ulid":                  {make: func(k int) string { return fmt.Sprintf("01ARZ3NDEKTSV4RR%010d", k+1) }},
	"nanoid":                {make: func(k int) string { return fmt.Sprintf("%021d", k+1) }},
	"semver":                {make: func(k int) string { return fmt.Sprintf("1.0.%d", k) }},
	"color":                 {make: func(k int) string { return fmt.Sprintf("#%06x", k%(1<<24)) }},
}

func address(first string) func(int) string {
	return func(k int) string {
		a := netip.MustParseAddr(first)
		for range k % 250 {
			a = a.Next()
		}
		return a.String()
	}
}

func encoded(encoding *base64.Encoding) func(int) string {
	return func(k int) string { return encoding.EncodeToString([]byte(fmt.Sprintf("%03d", k))) }
}

// sample returns string number k of the format, made as long as least if it can
// be. All are ASCII. It may be longer than most or too short.
func (f format) sample(k, least, most int) string {
	text := f.make(k)
	n := min(least, maxText) - len(text)
	switch {
	case n <= 0 || least > most:
	case f.head != "":
		text = strings.Repeat(f.head, n) + text
	case f.tail != "":
		text += strings.Repeat(f.tail, n)
	}
	return text
}

// checkers holds, for each format that the library can check, a schema that does.
var checkers = sync.OnceValue(func() map[string]*jsonschema.Schema {
	list := map[string]*jsonschema.Schema{}
	for name := range formats {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		c.UseLoader(refuser{})
		if c.AddResource("mcpconform:///format", map[string]any{"format": name}) != nil {
			continue
		}
		if s, err := c.Compile("mcpconform:///format"); err == nil {
			list[name] = s
		}
	}
	return list
})

// hasFormat reports whether a text is of a format. One that is not known has every text.
func hasFormat(name, text string) bool {
	s := checkers()[name]
	return s == nil || s.Validate(text) == nil
}
