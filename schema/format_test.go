package schema_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

func TestFormats(t *testing.T) {
	tests := map[string]struct{ valid, invalid []string }{
		"uri": {
			valid: []string{
				"file:///srv/a.txt", "http://example.org", "http://u:p@example.org:8080/a;b=c?d=e&f#g", "urn:isbn:0-1", "a:", "A+b-1.c:x",
				"http://[::1]:80/", "http://[v1.x]", "mailto:a@b", "x:/a//b", "custom://%7Bx%7D", "test://a?b?c/d", "data:text/plain,%20", "http://:80", "file://",
			},
			invalid: []string{
				"", "a", "/a", "//a/b", ":a", "1a:b", "a_b:c", "a/b:c", "?a:b", "http://a b/", "http://a/ü", "a:b c", `file:///C:\x`, "a:%", "a:%4", "a:%zz",
				"a:{b}", "a:<b>", "a:b#c#d", "http://[::1", "http://[]/", "http://[::1]x/", "http://a:8x/", "http://a@b@c/", "http://a[b]/", "a:b|c", "a:b\x00", "a:\xff",
			},
		},
		"uri-template": {
			valid: []string{
				"", "a", "/x/{y}", "wiki://{page}", "{+path}{#f}{.e}{/s}{;p}{?q}{&c}", "{a,b}", "{a:3}", "{a:9999}", "{a*}", "{a.b_c}", "{%41}", "{=x}", "ü{x}", "it's", "a%20b", "{a}{b}",
			},
			invalid: []string{
				"{", "}", "{}", "a}b", "{a", "{{a}}", "{a b}", "{a:0}", "{a:10000}", "{a:}", "{a:x}", "{a:+1}", "{.}", "{a..b}", "{.a.}", "{a.}", "{a,}", "{,a,b-}", "{a-b}", "a b", "a%2", `"a"`, "<a>", "a^b", "a`b", "a|b", `a\b`, "a\n",
			},
		},
		"byte": {
			valid:   []string{"", "QQ==", "QUI=", "QUJD", "+/+/", "QR=="},
			invalid: []string{"Q", "QQ", "QQ=", "QQ===", "====", "=", "QUJ", "Q=Q=", "-_-_", "QUJD\n", "QU JD", "QUJ%", "ÄÄ"},
		},
	}
	for format, test := range tests {
		for _, s := range test.valid {
			if reason := schema.CheckFormat(format, s); reason != "" {
				t.Errorf("%s %q: %s", format, s, reason)
			}
		}
		for _, s := range test.invalid {
			if schema.CheckFormat(format, s) == "" {
				t.Errorf("%s accepts %q", format, s)
			}
		}
	}
	if reason := schema.CheckFormat("hostname", "???"); reason != "" {
		t.Errorf("an unknown format is judged: %s", reason)
	}
}
