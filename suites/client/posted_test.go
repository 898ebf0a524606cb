package client_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// postsElsewhere opens a legacy stream and posts initialize to the announced URI
// without its query.
func postsElsewhere(ctx context.Context, server string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(r)
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
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
		if r, err = http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(body)); err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	return io.ErrUnexpectedEOF
}

func TestPostedElsewhere(t *testing.T) {
	run := conduct(t, suites.ClientOptions{
		Transport: transport.NameSSE, Timeout: 10 * time.Second, Scenarios: []string{"sse/session"},
		Launch: func(p client.Place) (transport.Process, error) {
			return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				return postsElsewhere(ctx, p.URL)
			}}.Launch()
		},
	})
	i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == "sse.client.post-to-endpoint" })
	if q := run.Requirements[i]; q.Verdict != result.Fail || len(q.Findings) == 0 || len(q.Findings[0].Evidence) < 2 {
		t.Errorf("%s is %s: %s %+v", q.ID, q.Verdict, q.Reason, q.Findings)
	}
}
