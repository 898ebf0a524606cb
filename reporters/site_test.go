package reporters

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/mcpconform/mcpconform/suites/result"
)

func siteRun(name, version, role string, day int, change func(r *result.Run)) SiteRun {
	run := sampleRun()
	run.Role, run.Target = role, result.Target{Name: name, Version: version}
	run.Started = time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	if change != nil {
		change(run)
	}
	return SiteRun{Run: run, Core: SiteVerdict{run.Verdict, "1 passed"}, Verified: day == 2}
}

// A site is the same for the same runs, each of its links leads somewhere, and no text of
// a target gets out of its place.
func TestSite(t *testing.T) {
	fixed := func(r *result.Run) {
		r.Requirements[0].Verdict, r.Requirements[0].Findings = result.Pass, nil
		r.Verdict = result.Conformant
	}
	runs := []SiteRun{
		siteRun("weather", "2", "server", 2, fixed), siteRun("weather", "1", "server", 1, nil),
		siteRun("Weather!", "1", "server", 1, nil), siteRun("../../etc/passwd", "1", "server", 1, nil),
		siteRun(hostile, hostile, "server", 1, nil), siteRun("weather", "1", "client", 1, nil), siteRun("", "", "client", 1, nil),
	}
	files, err := Site(runs)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(runs[2:])
	again, err := Site(runs)
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]string)
	for i, f := range files {
		if f.Name != again[i].Name || string(f.Content) != string(again[i].Content) {
			t.Errorf("%s depends on the order of runs", f.Name)
		}
		if pages[f.Name] != "" || f.Name != path.Clean(f.Name) || strings.HasPrefix(f.Name, "..") || strings.HasPrefix(f.Name, "/") {
			t.Errorf("the name %q is there twice or leads out of the site", f.Name)
		}
		pages[f.Name] = string(f.Content)
	}
	for _, want := range []string{"index.html", "implementations/weather.html", "implementations/weather-2.html", "implementations/etc-passwd.html", "compared/server-stdio.html", "compared/client-stdio.html", "runs/weather-1.html"} {
		if pages[want] == "" {
			t.Errorf("the site lacks %s; it has %v", want, len(pages))
		}
	}
	for name, text := range pages {
		if strings.HasPrefix(name, "runs/") {
			continue // a report, which has tests of its own
		}
		links := 0
		for z := html.NewTokenizer(strings.NewReader(text)); ; {
			if z.Next() == html.ErrorToken {
				if !errors.Is(z.Err(), io.EOF) {
					t.Error(z.Err())
				}
				break
			}
			token := z.Token()
			if slices.Contains([]string{"script", "img", "iframe", "object", "link", "base", "form"}, token.Data) && token.Type != html.TextToken {
				t.Errorf("%s has an element %s", name, token.Data)
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" {
					t.Errorf("%s has an attribute %s", name, a.Key)
				}
				if a.Key != "href" || strings.HasPrefix(a.Val, "https://modelcontextprotocol.io/") {
					continue
				}
				links++
				if pages[path.Join(path.Dir(name), a.Val)] == "" {
					t.Errorf("%s has a link to %q, which leads nowhere", name, a.Val)
				}
			}
		}
		if links == 0 || !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src`) {
			t.Errorf("%s has no link or no policy", name)
		}
	}
	weather := pages["implementations/weather.html"]
	for _, want := range []string{"2026-01-02 00:00</a> <small>verified</small>", "Changes of the last run", "lifecycle.version.echo-supported"} {
		if !strings.Contains(weather, want) {
			t.Errorf("the page of weather lacks %q", want)
		}
	}
	if strings.Index(weather, "2026-01-02") > strings.Index(weather, "2026-01-01") {
		t.Error("the newest run is not first")
	}
	if _, err := Site(nil); err == nil {
		t.Error("a site without runs is made")
	}
}
