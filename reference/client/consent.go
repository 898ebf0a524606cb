package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Consent lets a user agree to what an authorization server does not grant at once.
type Consent struct {
	// Show shows the address of a page to the user, and returns at once. It is told who has to log in, if not just
	// anybody.
	Show func(page, user string) error
	// Wait is how long the user has.
	Wait time.Duration
}

// callbackAddr and callbackPath make the redirect URI. If nobody can consent, nothing listens there: the client reads
// the redirect and does not follow it. A client that was registered by hand needs an address that stays the same.
const (
	callbackAddr = "127.0.0.1:33418"
	callbackPath = "/callback"
)

// loopback is where the user's browser is sent in the end (RFC 8252, section 7.3).
type loopback struct {
	uri    string
	server *http.Server  // nil if nothing listens
	served chan struct{} // closed when the server has ended
	came   chan url.Values
}

// listen listens for the browser, at another port if the usual one is in use. It takes one answer, which has the state.
// Nothing listens if c is nil.
func (c *Consent) listen(state string) (*loopback, error) {
	l := &loopback{uri: "http://" + callbackAddr + callbackPath}
	if c == nil {
		return l, nil
	}
	listener, err := net.Listen("tcp", callbackAddr)
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	l.uri = "http://" + listener.Addr().String() + callbackPath
	l.served, l.came = make(chan struct{}), make(chan url.Values, 1)
	l.server = &http.Server{Handler: l.handler(state), ReadHeaderTimeout: documentTime}
	go func() {
		defer close(l.served)
		_ = l.server.Serve(listener) // until close
	}()
	return l, nil
}

// handler answers the browser.
func (l *loopback) handler(state string) http.Handler {
	var once sync.Once
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		result, taken := r.URL.Query(), false
		if result.Get("state") == state {
			once.Do(func() {
				l.came <- result
				taken = true
			})
		}
		if !taken {
			http.Error(w, "mcpconform does not wait for this answer.", http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintln(w, "mcpconform has the answer. You can close this page.")
	})
	return mux
}

// close ends the server. The page that it has just answered is sent as a whole.
func (l *loopback) close() {
	if l.server == nil {
		return
	}
	limit, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if l.server.Shutdown(limit) != nil {
		_ = l.server.Close()
	}
	<-l.served
}

// mostHops bounds the redirects between the authorization endpoint and the client.
const mostHops = 10

// granted makes the authorization request and returns the parameters with which the browser comes back.
func (a *Authorizer) granted(ctx context.Context, page string, back *loopback, state string) (url.Values, error) {
	status, result, err := a.follow(ctx, page, back.uri)
	asked := result == nil
	switch {
	case err != nil:
		return nil, err
	case asked && (a.Consent == nil || status/100 == 4 || status/100 == 5):
		return nil, unredirected(status)
	case asked:
		if result, err = a.Consent.wait(ctx, page, a.User, back); err != nil {
			return nil, err
		}
		a.steps = append(a.steps, FlowStep{"the user, on this page, in a browser", "a redirect to mcpconform"})
	}
	a.learn(result.Get("code"))
	code := result.Get("error")
	switch {
	case result.Get("state") != state:
		return nil, broken(OfAuthorizationServer, ids.AuthAsOauth21,
			errors.New("the authorization came back with another state"))
	case result.Has("iss") && result.Get("iss") != a.found.Issuer: // RFC 9207, section 2.4
		return nil, broken(OfAuthorizationServer, ids.AuthAsISS,
			fmt.Errorf("the authorization came back with the iss %s",
				wire.Quote(result.Get("iss"), 100)))
	case asked && code == "access_denied":
		return nil, &DutyError{Duty: OfNobody, Err: errors.New("the user did not agree (access_denied)"),
			Advice: "log in again, and allow the access, or give an access token (--bearer-env VAR)"}
	case result.Get("code") == "":
		return nil, ungranted(fmt.Errorf("the authorization was refused: %s", wire.Quote(code, 60)))
	}
	return result, nil
}

// follow requests a page, and follows redirects until one leads back. It returns the last HTTP status and the
// parameters of that redirect, which are nil if a page waits for the user.
func (a *Authorizer) follow(ctx context.Context, page, back string) (status int, result url.Values, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return 0, nil, err
	}
	for hop := 0; ; hop++ {
		resp, err := a.do(ctx, query{named: OfAuthorizationServer, method: http.MethodGet, at: page,
			header: http.Header{"Accept": {"text/html,application/json;q=0.9"}}, jar: jar})
		if err != nil {
			return 0, nil, err
		}
		_ = resp.Body.Close()
		if resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "" || hop == mostHops {
			return resp.StatusCode, nil, nil
		}
		to, err := resp.Location()
		switch {
		case err != nil:
			return 0, nil, ungranted(fmt.Errorf("the authorization request was redirected: %w", err))
		case strings.HasPrefix(to.String(), back+"?"):
			return resp.StatusCode, to.Query(), nil
		}
		page = to.String()
	}
}

// wait shows a page to the user, and waits until the browser comes back.
func (c *Consent) wait(ctx context.Context, page, user string, back *loopback) (url.Values, error) {
	if err := c.Show(page, user); err != nil {
		return nil, &DutyError{Duty: OfNobody, Err: fmt.Errorf("the page for the user could not be shown: %w", err),
			Advice: "run mcpconform in a terminal without --browser, and open the address that it prints"}
	}
	select {
	case result := <-back.came:
		return result, nil
	case <-time.After(c.Wait):
		return nil, &DutyError{Duty: OfNobody,
			Err:    fmt.Errorf("no browser came back from the page of the authorization server within %v", c.Wait),
			Advice: "log in on this machine and sooner, or raise --login-timeout"}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
