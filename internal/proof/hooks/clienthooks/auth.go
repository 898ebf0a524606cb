package clienthooks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// WithoutAuthorization is a client that makes no request to obtain a token.
var WithoutAuthorization = RoundTripping(func(http.RoundTripper) http.RoundTripper {
	return RoundTrip(func(*http.Request) (*http.Response, error) { return nil, ErrDead })
})

// Requested changes the parameters of authorization requests.
func Requested(change func(parameters url.Values)) apply {
	return Seeking(Authorization, func(r *http.Request) {
		parameters := r.URL.Query()
		change(parameters)
		r.URL.RawQuery = parameters.Encode()
	})
}

// TokenAs changes the heads of the requests that show an access token.
func TokenAs(change func(h *Head, token string)) apply {
	return Heads(func(h *Head) {
		if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
			change(h, token)
		}
	})
}

// Query adds a query to the target of the request.
func (h *Head) Query(parameters string) {
	if parts := strings.Split(h.Line, " "); len(parts) == 3 {
		parts[1] += "?" + parameters
		h.Line = strings.Join(parts, " ")
	}
}

// Following follows redirects, with the token or without it, before the next message is
// sent.
func Following(c *client.Standalone, shows bool) {
	var mu sync.Mutex
	token, followed := "", make(map[string]bool)
	sender := &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}
	TokenAs(func(_ *Head, shown string) {
		mu.Lock()
		defer mu.Unlock()
		token = shown
	})(c)
	follow := func(ctx context.Context, at string) {
		mu.Lock()
		defer mu.Unlock()
		if followed[at] || token == "" {
			return
		}
		followed[at] = true
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, http.NoBody)
		if err != nil {
			return
		}
		if shows {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if resp, err := sender.RoundTrip(r); err == nil {
			_ = Reread(resp)
		}
	}
	SendingOn(func(ctx context.Context, conn transport.Conn) {
		for _, e := range conn.Log().Events() {
			if e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusTemporaryRedirect {
				follow(ctx, e.HTTP.Header.Get("Location"))
			}
		}
	})(c)
}

// RoundTripping wraps the transport of the requests with which the client seeks
// authorization.
func RoundTripping(wrap func(next http.RoundTripper) http.RoundTripper) apply {
	return func(c *client.Standalone) {
		a := client.Authorizer{}
		if c.Authorizer != nil {
			a = client.Authorizer{ID: c.Authorizer.ID, Secret: c.Authorizer.Secret, Transport: c.Authorizer.Transport}
		}
		if a.Transport == nil {
			a.Transport = &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}
		}
		a.Transport = wrap(a.Transport)
		c.Authorizer = &a
	}
}

// Exchanging changes how the client makes the requests with which it seeks authorization.
func Exchanging(do func(next http.RoundTripper, r *http.Request) (*http.Response, error)) apply {
	return RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) { return do(next, r) })
	})
}

// RoundTrip sends a request of the flow.
type RoundTrip func(r *http.Request) (*http.Response, error)

func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Step is a request of the flow.
type Step int

const (
	OtherStep Step = iota
	WellKnown
	Registration
	Authorization
	TokenRequest
)

// StepOf returns to which step of the flow a request belongs.
func StepOf(r *http.Request) Step {
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		return WellKnown
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json":
		return Registration
	case r.Method == http.MethodPost:
		return TokenRequest
	case r.URL.Query().Get("response_type") != "":
		return Authorization
	}
	return OtherStep
}

// Seeking changes the requests of one step.
func Seeking(which Step, change func(r *http.Request)) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if StepOf(r) == which {
			r = r.Clone(r.Context())
			change(r)
		}
		return next.RoundTrip(r)
	})
}

// Formed changes the form of token requests, and perhaps their header.
func Formed(change func(form url.Values, h http.Header)) apply {
	return Seeking(TokenRequest, func(r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(raw))
		change(form, r.Header)
		SetBody(r, []byte(form.Encode()))
	})
}

// Registering changes what the client says of itself when it registers.
func Registering(change func(document object)) apply {
	return Seeking(Registration, func(r *http.Request) {
		var document object
		raw, _ := io.ReadAll(r.Body)
		if json.Unmarshal(raw, &document) == nil {
			change(document)
			raw = client.Marshal(document)
		}
		SetBody(r, raw)
	})
}

// EndingAt ends the client before a step of the flow.
func EndingAt(which Step) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if StepOf(r) == which {
			return nil, ErrDead
		}
		return next.RoundTrip(r)
	})
}

// Repeatable returns a copy of a request with its body.
func Repeatable(r *http.Request) *http.Request {
	body, _ := io.ReadAll(r.Body)
	SetBody(r, body)
	again := r.Clone(r.Context())
	SetBody(again, body)
	return again
}

// AfterTokenRequest changes what the client does with the answer to a token request. It may send the request again.
func AfterTokenRequest(then func(next http.RoundTripper, again *http.Request,
	resp *http.Response) (*http.Response, error)) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if StepOf(r) != TokenRequest {
			return next.RoundTrip(r)
		}
		again := Repeatable(r)
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		return then(next, again, resp)
	})
}

// Probe makes a request at another path of the host, and returns the status of the answer, or 0.
func Probe(next http.RoundTripper, r *http.Request, path string) int {
	probe := r.Clone(r.Context())
	probe.URL.Path = path
	resp, err := next.RoundTrip(probe)
	if err != nil {
		return 0
	}
	_ = Reread(resp)
	return resp.StatusCode
}

// Returned changes the parameters with which an authorization comes back.
func Returned(change func(result url.Values)) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || StepOf(r) != Authorization || resp.StatusCode/100 != 3 {
			return resp, err
		}
		if back, err := url.Parse(resp.Header.Get("Location")); err == nil {
			result := back.Query()
			change(result)
			back.RawQuery = result.Encode()
			resp.Header.Set("Location", back.String())
		}
		return resp, nil
	})
}

// SetBody gives a request another body.
func SetBody(r *http.Request, text []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.GetBody = nil
}

// Reread reads the body of a response, which can then be read again.
func Reread(resp *http.Response) []byte {
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return text
}

// Rewritten changes the object in a response.
func Rewritten(resp *http.Response, change func(document object)) {
	var document object
	if json.Unmarshal(Reread(resp), &document) == nil {
		change(document)
		resp.Body = io.NopCloser(bytes.NewReader(client.Marshal(document)))
	}
}
