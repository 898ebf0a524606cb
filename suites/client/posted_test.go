package client_test

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// listen opens the event stream at a URL.
func listen(ctx context.Context, p client.Endpoint) (*http.Response, error) {
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, err
	}
	get.Header.Set("Accept", "text/event-stream")
	return reaching(p).Do(get)
}

// reaching returns a client that reaches the server of a scenario.
func reaching(p client.Endpoint) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}}
}

// postsElsewhere opens a legacy stream and posts initialize to the announced URI
// without its query.
func postsElsewhere(ctx context.Context, p client.Endpoint) error {
	stream, err := listen(ctx, p)
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		to, err := stream.Request.URL.Parse(data)
		if err != nil {
			return err
		}
		to.RawQuery = url.Values{}.Encode()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(initialize))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := reaching(p).Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	return io.ErrUnexpectedEOF
}

func TestPostedElsewhere(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Transport: transport.NameSSE, Scenarios: []string{"sse/session"}, Launch: func(p client.Endpoint) (transport.Process, error) {
		return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
			return postsElsewhere(ctx, p)
		}}.Launch()
	}}, suites.Options{Timeout: 10 * time.Second})
	if run.Verdict != result.NotConformant {
		t.Errorf("the run is %s: %s", run.Verdict, run.Reason)
	}
	if q := requirement(t, run, "sse.client.post-to-endpoint"); q.Verdict != result.Fail || len(q.Findings) == 0 || len(q.Findings[0].Evidence) < 2 {
		t.Errorf("%s is %s: %s %+v", q.ID, q.Verdict, q.Reason, q.Findings)
	}
}

// A client that no ordinary server takes in has shown nothing.
func TestNeverTakenIn(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Transport: transport.NameHTTP, Scenarios: []string{client.Baseline}, Launch: func(p client.Endpoint) (transport.Process, error) {
		return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
			return postsInitialize(ctx, p, http.Header{"Mcp-Session-Id": {"of-another-day"}})
		}}.Launch()
	}}, suites.Options{Timeout: 10 * time.Second})
	if want := "no initialize of the client got a result"; run.Verdict != result.Incomplete || !strings.HasPrefix(run.Reason, want) {
		t.Errorf("the run is %s: %q; want incomplete: %q", run.Verdict, run.Reason, want)
	}
}

// postsInitialize sends initialize, with some more headers, and nothing else.
func postsInitialize(ctx context.Context, p client.Endpoint, more http.Header) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, strings.NewReader(initialize))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	maps.Copy(r.Header, more)
	answer, err := reaching(p).Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
