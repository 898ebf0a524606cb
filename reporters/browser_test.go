package reporters

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// axeCore returns the rules of accessibility that fixtures/targets/axe pins, or skips
// the test.
func axeCore(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("MCPCONFORM_TARGETS")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "mcpconform", "targets")
	}
	rules, err := os.ReadFile(filepath.Join(cache, "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("left out: the rules of accessibility; install them with `go run ./.ci/targets install axe`")
	}
	return string(rules)
}

// browser is a tab of Chromium, led by the protocol of its developer tools.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
	loads   int
	// Faults are what the browser refused or failed to run.
	faults []string
}

type browserMessage struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// openBrowser starts Chromium, or skips the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	if os.Getenv("MCPCONFORM_INTEROP") == "" {
		t.Skip("left out: the HTML report in a browser; install Chromium and set MCPCONFORM_INTEROP=1")
	}
	if testing.Short() {
		t.Skip("left out with -short: the HTML report in a browser")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("left out: the HTML report in a browser; there is no chromium on the PATH")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--no-first-run", "--disable-gpu"}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // root has none
	}
	cmd := exec.Command(path, args...)
	cmd.ExtraFiles = []*os.File{theirs, ours}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), ours.Close()
	b := &browser{t: t, to: to, from: bufio.NewReader(from)}
	t.Cleanup(func() {
		// All of its processes hold the pipe, and write to its folder, until they end.
		_, _ = to.Write([]byte(`{"id":0,"method":"Browser.close"}` + "\x00"))
		_, _ = io.Copy(io.Discard, b.from)
		_ = cmd.Wait()
		_, _ = to.Close(), from.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) receive() browserMessage {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("read from the browser: %v", err)
	}
	var m browserMessage
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		b.loads++
	case "Runtime.exceptionThrown", "Log.entryAdded":
		b.faults = append(b.faults, string(m.Params))
	case "Network.requestWillBeSent":
		var request struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &request)
		if address := request.Request.URL; !strings.HasPrefix(address, "file:") {
			b.faults = append(b.faults, "the page asks for "+address)
		}
	}
	return m
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("write to the browser: %v", err)
	}
	for {
		m := b.receive()
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// look sets how the page is looked at.
func (b *browser) look(width int, media, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []any{
		map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// open loads a page anew.
func (b *browser) open(path, hash string) {
	b.t.Helper()
	for _, address := range []string{"about:blank", "file://" + path + hash} {
		before := b.loads
		b.call("Page.navigate", map[string]any{"url": address}, nil)
		for b.loads == before {
			b.receive()
		}
	}
}

// eval runs an expression in the page and returns its value as JSON.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s", expression, got.ExceptionDetails)
	}
	return string(got.Result.Value)
}

// want fails unless the expression is true.
func (b *browser) want(expression string) {
	b.t.Helper()
	if got := b.eval(expression); got != "true" {
		b.t.Errorf("%s is %s", expression, got)
	}
}

func (b *browser) press(key string, code int) {
	b.t.Helper()
	text := ""
	if key == "Enter" {
		text = "\r"
	}
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// pageFile writes the report of the sample, which has hostile text in it, to a file.
func pageFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	run := sampleRun()
	run.Against = &result.Comparison{New: []string{"stdio.stdout.only-messages"}, Mended: []string{"tools.list.answered"}}
	if err := os.WriteFile(path, []byte(render(t, HTML, run)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// noFaults fails if the page was kept from something, or ran into an error.
func (b *browser) noFaults() {
	b.t.Helper()
	for _, fault := range b.faults {
		b.t.Error(fault)
	}
	b.faults = nil
}

const findings = `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.flatMap((v) =>
	v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 200) + '\n' + n.failureSummary)).join('\n'))`

// siteFiles writes a site of some runs, with hostile text in them, and returns its folder.
func siteFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	runs := []SiteRun{siteRun("weather", "2", "server", 2, func(r *result.Run) { r.Requirements[0].Verdict = result.Pass }), siteRun("weather", "1", "server", 1, nil)}
	for _, name := range []string{hostile, "a-rather-long-name-without-a-blank-of-an-implementation", "calendar", "notes", "", "time"} {
		runs = append(runs, siteRun(name, "1.0.0-beta.1+build.20260101", "server", 1, nil))
	}
	files, err := Site(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each page can be used on a phone and in the dark, and no rule of accessibility is broken.
func TestPagesAreAccessible(t *testing.T) {
	b := openBrowser(t)
	rules, page, site := axeCore(t), pageFile(t), siteFiles(t)
	type address struct{ path, hash string }
	var addresses []address
	for _, hash := range []string{"", "#verdict=pass", "#tools.list.answered", "#stdio.stdout.only-messages"} {
		addresses = append(addresses, address{page, hash})
	}
	for _, name := range []string{"index.html", "implementations/weather.html", "compared/server-stdio.html"} {
		addresses = append(addresses, address{filepath.Join(site, name), ""})
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{360, 1280} {
			b.look(width, "screen", scheme)
			for _, a := range addresses {
				name := fmt.Sprintf("%s at %d pixels, %s%s", scheme, width, filepath.Base(a.path), a.hash)
				b.open(a.path, a.hash)
				b.eval(`document.querySelectorAll('main.wide details').forEach((d) => d.open = true)`)
				if got := b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); got != "0" {
					t.Errorf("%s: the page is cut: it is %s pixels too wide", name, got)
				}
				if got := b.eval(`[...document.querySelectorAll('.card')].filter((c) => c.scrollWidth > c.clientWidth).length`); width == 360 && got != "0" {
					t.Errorf("%s: %s tables have to be scrolled sideways", name, got)
				}
				b.eval(rules + ";0")
				if got := b.eval(findings); got != `""` {
					t.Errorf("%s:\n%s", name, strings.ReplaceAll(got, `\n`, "\n"))
				}
			}
		}
	}
	b.noFaults()
}

// shown are the ids of the requirements that can be seen.
const shown = `[...document.querySelectorAll('.requirement')].filter((r) => r.checkVisibility()).map((r) => r.querySelector('code').textContent).join()`

// whenShown calls done once the filter was applied.
const whenShown = `new MutationObserver(() => setTimeout(done)).observe(document.getElementById('shown'), {childList: true, characterData: true, subtree: true});`

func TestHTMLInABrowser(t *testing.T) {
	b := openBrowser(t)
	page := pageFile(t)
	b.look(1280, "screen", "light")

	b.open(page, "")
	b.want(`!(` + shown + `).includes('tools.list.answered')`)
	b.press("Tab", 9)
	b.want(`document.activeElement.getAttribute('href') === '#requirements'`)
	b.eval(`document.querySelector('.fold > summary').focus()`)
	b.press("Enter", 13)
	b.want(`document.querySelector('.fold').open`)
	b.press("Enter", 13)
	b.want(`!document.querySelector('.fold').open`)

	// A filter comes from the address, unfolds what it finds, and goes there.
	b.open(page, "#verdict=pass&text=CURSOR")
	b.want(shown + ` === 'tools.list.cursor-accepted'`)
	all := len(sampleRun().Requirements)
	b.want(fmt.Sprintf(`document.getElementById('shown').value === '1 of %d shown'`, all))
	b.eval(`new Promise((done) => {
		` + whenShown + `
		const text = document.querySelector('input[name=text]');
		text.value = 'unique';
		text.dispatchEvent(new Event('input', {bubbles: true}));
	}).then(() => 0)`)
	b.want(`location.hash === '#verdict=pass&text=unique' && ` + shown + ` === ''`)
	b.eval(`new Promise((done) => {
		` + whenShown + `
		document.querySelector('button[type=reset]').click();
	}).then(() => 0)`)
	b.want(fmt.Sprintf(`location.hash === '' && document.getElementById('shown').value === '%[1]d of %[1]d shown'`, all))

	b.open(page, "#change=mended")
	b.want(shown + ` === 'tools.list.answered'`)

	// The text of an address need not make sense.
	for _, hash := range []string{"#verdict=nonsense", "#%E0%A4%A", "#constructor", "#=&=", "#text=<img>"} {
		b.open(page, hash)
		b.want(`document.getElementById('shown').value.endsWith('shown')`)
	}

	// A link shows its requirement alone, and leads back to the filter.
	b.open(page, "#level=SHOULD")
	b.eval(`new Promise((done) => { addEventListener('hashchange', done); location.hash = '#tools.list.answered'; }).then(() => 0)`)
	b.want(shown + ` === 'tools.list.answered'`)
	b.want(`document.title.startsWith('tools.list.answered')`)
	b.want(`[...document.querySelectorAll('.requirement[open] button')].some((b) => b.textContent === 'Copy command')`)
	b.want(`document.getElementById('back').hash === '#level=SHOULD' && document.getElementById('back').checkVisibility()`)

	// JSON is laid out, and is what was sent when it is not.
	b.open(page, "#lifecycle.version.echo-supported")
	b.want(`getComputedStyle(document.querySelector('.requirement[open] pre span')).display === 'block'`)
	b.eval(`document.getElementById('exact').click()`)
	b.want(`getComputedStyle(document.querySelector('.requirement[open] pre span')).display === 'inline'`)
	b.want(`JSON.parse(document.querySelector('.requirement[open] pre').textContent).method === 'initialize'`)

	// On paper there are findings, and nothing to click on.
	b.look(800, "print", "light")
	b.open(page, "")
	b.want(`document.querySelector('.warn .evidence pre').checkVisibility({contentVisibilityAuto: true})`)
	b.want(`!document.getElementById('filter').checkVisibility()`)

	// Links work without a script.
	b.look(1280, "screen", "light")
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(page, "#tools.list.answered")
	b.want(shown + ` === 'tools.list.answered'`)
	b.want(`document.getElementById('tools.list.answered').checkVisibility() && document.getElementById('filter').hidden`)
	b.noFaults()
}
