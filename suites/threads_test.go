package suites_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
)

// thread is a bug report about a server or a client, and a fault of the catalogues that has the same form.
type thread struct {
	URL   string `yaml:"url"`
	Open  bool   `yaml:"open"`  // it was open when it was read
	Wrong string `yaml:"wrong"` // what was wrong on the wire
	Side  string `yaml:"side"`
	Form  string `yaml:"form"`
	Shows string `yaml:"shows"` // a fault
	None  string `yaml:"none"`  // why there is none
}

const (
	plainForm  = "plain"
	serverSide = "server"
	clientSide = "client"
)

// whyNone are the reasons for which a thread has no fault.
var whyNone = map[string]string{
	"not forbidden":              "no sentence of this revision forbids it",
	"not visible":                "it does not show on the wire",
	"the other side":             "what was reported is how one side copes with a fault of the other",
	"later revision":             "it is about a later revision",
	"outside of MCP":             "it is about what is agreed upon beside MCP",
	"not clear":                  "the thread does not say what was on the wire",
	"not told apart":             "nothing on the wire tells it from what is legal",
	"suites/client/auth_test.go": "a fault of authorization, which these tests have in place of the catalogue",
}

// TestThreads wants each thread to be there once, with a fault that exists and has its form, and the page about them
// to be up to date.
func TestThreads(t *testing.T) {
	raw, err := os.ReadFile("../fixtures/threads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var threads []thread
	if err := yaml.UnmarshalWithOptions(raw, &threads, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`^https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+$`)
	faults := faultForms()
	seen := make(map[string]bool)
	for _, th := range threads {
		switch form, known := faults[th.Side][th.Shows]; {
		case !address.MatchString(th.URL):
			t.Errorf("%q is not the address of a thread", th.URL)
		case seen[th.URL]:
			t.Errorf("%s is there twice", th.URL)
		case faults[th.Side] == nil:
			t.Errorf("%s: the side is %q", th.URL, th.Side)
		case !strings.HasSuffix(th.Wrong, "."):
			t.Errorf("%s: what was wrong is no sentence", th.URL)
		case (th.Shows == "") == (th.None == ""):
			t.Errorf("%s: it needs either a fault or a reason for none", th.URL)
		case th.None != "" && whyNone[th.None] == "":
			t.Errorf("%s: %q is none of the reasons", th.URL, th.None)
		case th.Shows != "" && !known:
			t.Errorf("%s: there is no fault %s of a %s", th.URL, th.Shows, th.Side)
		case th.Shows != "" && form != th.Form:
			t.Errorf("%s: its form is %s, and that of %s is %s", th.URL, th.Form, th.Shows, form)
		}
		seen[th.URL] = true
	}
	const file = "../docs/threads.md"
	page := threadsPage(threads)
	if killmatrix.Update() {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), string(page)); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-file +now):\n%s", file, diff)
	}
}

// faultForms returns the forms of all faults by side and id.
func faultForms() map[string]map[string]string {
	forms := map[string]map[string]string{serverSide: {}, clientSide: {}}
	put := func(side, id string, form mockserver.Form) {
		if form == "" {
			form = plainForm
		}
		forms[side][id] = string(form)
	}
	for _, f := range mockserver.Catalogue() {
		put(serverSide, f.ID, f.Form)
	}
	for _, f := range mockclient.Catalogue() {
		put(clientSide, f.ID, f.Form)
	}
	return forms
}

func threadsPage(threads []thread) []byte {
	count := func(fits func(th thread) bool) string {
		n := 0
		for _, th := range threads {
			if fits(th) {
				n++
			}
		}
		return fmt.Sprint(n)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, threadsHead, count(func(thread) bool { return true }), count(func(th thread) bool { return !th.Open }))
	killmatrix.Row(&b, []string{"form", "servers", "clients"})
	b.WriteString("|---|---|---|\n")
	forms := []mockserver.Form{plainForm, mockserver.ByValue, mockserver.BySession, mockserver.AtOnce, mockserver.InSequence}
	for _, form := range forms {
		of := func(side string) string {
			return count(func(th thread) bool { return th.Shows != "" && th.Side == side && th.Form == string(form) })
		}
		killmatrix.Row(&b, []string{string(form), of(serverSide), of(clientSide)})
	}
	b.WriteString("\nThe others have no fault:\n\n")
	killmatrix.Row(&b, []string{"threads", "why"})
	b.WriteString("|---|---|\n")
	for _, why := range slices.Sorted(maps.Keys(whyNone)) {
		killmatrix.Row(&b, []string{count(func(th thread) bool { return th.None == why }), whyNone[why]})
	}
	b.WriteString(threadsFifty)
	for _, side := range []string{serverSide, clientSide} {
		fmt.Fprintf(&b, "\n## Faults of %ss and their threads\n\n", side)
		by := make(map[string][]string)
		for _, th := range threads {
			if th.Side == side && th.Shows != "" {
				by[th.Shows] = append(by[th.Shows], fmt.Sprintf("[%s](%s)", threadName(th.URL), th.URL))
			}
		}
		killmatrix.Row(&b, []string{"fault", "threads"})
		b.WriteString("|---|---|\n")
		for _, id := range slices.Sorted(maps.Keys(by)) {
			killmatrix.Row(&b, []string{"`" + id + "`", strings.Join(by[id], ", ")})
		}
	}
	return b.Bytes()
}

// threadName returns owner/name#number.
func threadName(url string) string {
	parts := strings.Split(strings.TrimPrefix(url, "https://github.com/"), "/")
	return parts[0] + "/" + parts[1] + "#" + parts[3]
}

const threadsHead = `# Threads

These are public bug reports about servers and clients of MCP: %s threads, %s of them closed when they were read. They come from the official SDKs, from
popular servers, clients and gateways, and from many small ones. Each report was read with its nearest comments, a long thread not always whole. ` + "`fixtures/threads.yaml`" + ` has one
sentence on the fault on the wire, and a fault of the mock server or the mock client with the same form. The catalogues in ` + "`mockserver`" + ` cite further threads. This page is written by ` + "`go test ./suites -run TestThreads -update`" + `.

The form of the fault says what a stimulus needs to show it:

`

const threadsFifty = `
## Fifty that nobody had looked at

Fifty of these threads were made faults without a look at the checks: 35 of servers, 15 of clients, all forbidden by the text and cited by no fault. No check was changed before all had run. 39 were caught at once, 36 of them under the requirement that says what was wrong, and eleven were missed. Nine of the eleven are caught now:

| missed | what it taught | what changed |
|---|---|---|
| [a notification without params is refused with 400](https://github.com/hyperdxio/hyperdx/issues/2686) | The twin with and without params was sent as a request only. An error status for a notification is legal by itself, so only the twin shows the fault. | http/notification-without-params |
| [the stream of a refusal stays open](https://github.com/modelcontextprotocol/java-sdk/issues/1050) | What holds for the way of an answer was tried with results alone; errors go another way through many programs. | http/stream-ends sends an unknown method as well |
| [DELETE without a session id is answered with 204](https://github.com/aipotheosis-labs/gate22/pull/137) | POST and GET were tried without the id, and the third method was not. | http/session-missing sends all three |
| [answers that a code page cannot hold are lost](https://github.com/simonlin1212/Vibe-Research/issues/27) | A text whose answer is missing was left out, as a tool may be slow. A slow tool does not lose texts of one kind only. | tools/strings and prompts/strings compare which texts get an answer |
| [notifications/roots/list_changed is answered with an error](https://github.com/HatriGt/hana-mcp-server/issues/22) | It was sent only to servers that ask for roots, and in sessions in which something unreadable excused errors without an id. | base/known-notification sends it between two pings |
| [initialize is awaited for ever](https://github.com/vercel/ai/issues/18075) | The scenario judged who gives up, and had no word for who does not, although the time after which the client is to give up is known. | lifecycle/unanswered judges the time limit as the other scenarios do |
| [audio in a result ends the client](https://github.com/frontman-ai/frontman/issues/1545) | What the client copes with is counted by requirement, and it copes with a mix of others before. | images and audio in results are requirements of their own |
| [an initialize without an id is answered](https://github.com/paiml/aprender/pull/2090) | Requests without an id were tried in sessions alone. What comes before the handshake goes another way through many servers. | lifecycle/initialize-without-id begins a session with one, and others use the session after it |
| [a tool without parameters refuses an empty object](https://github.com/use-novamira/novamira/issues/53) | A refusal has many reasons. A twin tells them apart: the same call without arguments, or with any that the inputSchema allows, is served, and then the first one is refused again. | tools/callable warns of it |

Two are still missed:

| missed | what it takes |
|---|---|
| [30.0 is refused for an integer](https://github.com/dmtrKovalenko/fff/pull/328) | Nothing, as it turned out: integers SHOULD NOT be written with a fraction (JSON Schema, core, section 6.3), so who refuses 30.0 is within its rights (positions, integers-with-fraction). |
| [a GET is never answered](https://github.com/n8n-io/n8n/pull/34835) | Nothing tells it from a server that writes the head with the first event, so the checks that need the stream are inconclusive and say why. |

The lesson of most is one: a rule that holds for three methods, for results and errors, for requests and notifications has to be tried with each. The forms that were caught and that the catalogue lacked have become faults; the faults in the lists below show the others.
`
