package wellformed

import "testing"

// TestReport tests that broken reports are found, and sound ones are accepted.
func TestReport(t *testing.T) {
	page := func(body string) string {
		return "<!DOCTYPE html>\n<html><head><title>t</title></head><body>" + body + "</body></html>\n"
	}
	for _, tt := range []struct {
		name, text string
		sound      bool
	}{
		{"results.json", `{"a":[1]}`, true},
		{"results.json", ``, false},
		{"results.json", `{"a":[1]`, false},
		{"results.json", `{} {}`, false},
		{"trace.jsonl", "{}\n{}\n", true},
		{"trace.jsonl", "{}\n{\n", false},
		{"junit.xml", `<a><b c="&#10;">x</b></a>`, true},
		{"junit.xml", `<a><b></a>`, false},
		{"junit.xml", "<a>\x08</a>", false},
		{"junit.xml", "<a/><b/>", false},
		{"badge.svg", "<svg>", false},
		{"console.txt", "é ok — “x”\n", true},
		{"console.txt", "a\x1b[31mb\n", false},
		{"console.txt", "a\rb\n", false},
		{"console.txt", "a\u202eb\n", false},
		{"console.txt", "a\u009bb\n", false},
		{"console.txt", "a\xffb\n", true}, // as the replacement character
		{"report.html", page(`<p id="a"><a href="#a">x</a> <a href="https://a.example">y</a></p>`), true},
		{"report.html", page(`<p onclick="x">a</p>`), false},
		{"report.html", page(`<img src="x">`), false},
		{"report.html", page(`<a href="javascript:x">a</a>`), false},
		{"report.html", page(`<a href="#b">a</a>`), false},
		{"report.html", page(`<p id="a"></p><p id="a"></p>`), false},
		{"report.html", page(`<script>a</script><script>b</script>`), false},
		{"report.html", page("a\x00b"), false},
		{"a.md", "# a\n\na \\<script> `<img>`<br>b <https://a.example/b>\n\n```json\n<script>\n```\n", true},
		{"a.md", "a <script>x</script>\n", false},
		{"a.md", "a <br onclick=\"x\">\n", false},
		{"a.md", "<javascript:a>\n", false},
		{"a.md", "<!-- a\n", false},
		{"a.md", "```\na\n", false},
		{"a.md", "a\x1bb\n", false},
		{"a.github", "::error title=a%3A b,file=c::text\n::notice::x\n", true},
		{"a.github", "::error title=a::b\nc\n", false},
		{"a.github", "::set-env name=a::b\n", false},
		{"a.github", "::error title=a::##[error]b\n", false},
		{"a.pdf", "a", false},
	} {
		if err := Report(tt.name, tt.text); (err == nil) != tt.sound {
			t.Errorf("%s %q: %v", tt.name, tt.text, err)
		}
	}
	for text, sound := range map[string]bool{"a\n: :b": true, "a\n  ::b": false, "a\r::b": false, "a ##[b": false} {
		if err := Guarded(text); (err == nil) != sound {
			t.Errorf("%q: %v", text, err)
		}
	}
}
