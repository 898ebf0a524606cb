package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// TokenSource yields the access token of each request to an endpoint
// (basic/authorization#token-requirements). It is safe for concurrent use.
type TokenSource interface {
	// Token returns the token for the next request, or "" if there is none. It may wait for a new one.
	Token(ctx context.Context) string
	// Refused reports that a request with a token was answered with status 401. It returns the token with which the
	// request may be sent again, or "".
	Refused(ctx context.Context, token string) string
}

// Bearer is a source that is given its token.
type Bearer struct{ token atomic.Pointer[string] }

// NewBearer returns a source of a token.
func NewBearer(token string) *Bearer {
	b := new(Bearer)
	b.Set(token)
	return b
}

// BearerFrom returns a source of the token that an environment variable holds.
func BearerFrom(variable string) (*Bearer, error) {
	token := strings.TrimSpace(os.Getenv(variable))
	switch {
	case token == "" && !IsVariable(variable):
		return nil, errors.New(
			"the text is not the name of an environment variable; put the token into one and give its name")
	case token == "":
		return nil, fmt.Errorf("the environment variable %s, which should hold a bearer token, is empty", variable)
	case !httpguts.ValidHeaderFieldValue(token):
		return nil, fmt.Errorf(
			"the token in the environment variable %s has characters that are not allowed in a header", variable)
	}
	return NewBearer(token), nil
}

// Set exchanges the token.
func (b *Bearer) Set(token string) { b.token.Store(&token) }

// Token returns the token.
func (b *Bearer) Token(context.Context) string { return *b.token.Load() }

// Refused returns "": there is no other token.
func (b *Bearer) Refused(context.Context, string) string { return "" }

// Authorization returns the value of the Authorization header that the user or a login has given for the endpoint,
// or "".
func (e Endpoint) Authorization(ctx context.Context) string {
	if e.Token != nil {
		if token := e.Token.Token(ctx); token != "" {
			return schemeBearer + token
		}
	}
	return e.Header.Get("Authorization")
}

const schemeBearer = "Bearer "

// common returns the header that every request has.
func (s *site) common(ctx context.Context) http.Header {
	h := s.header.Clone()
	if s.tokens == nil {
		return h
	}
	if token := s.tokens.Token(ctx); token != "" {
		s.redact.Add(token)
		h.Set("Authorization", schemeBearer+token)
	}
	return h
}

// authorized makes an exchange. If the server no longer accepts the access token, and there is a newer one, it sends
// the request again. A request that is refused with 401 had no effect, so this is the same request and no other.
func (x *roundTrip) authorized(req *http.Request) (*http.Response, error) {
	resp, err := x.roundTrip(req)
	tokens := x.link.site.tokens
	if err != nil || resp.StatusCode != http.StatusUnauthorized || tokens == nil {
		return resp, err
	}
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), schemeBearer)
	if !ok {
		return resp, nil
	}
	if token = tokens.Refused(x.ctx, token); token == "" {
		return resp, nil
	}
	_ = resp.Body.Close()
	x.link.site.redact.Add(token)
	again := x.repeated(req)
	again.Header.Set("Authorization", schemeBearer+token)
	x.link.log.Note(x.stream +
		": the access token has lapsed (HTTP status 401); the request is sent again with a new one")
	return x.roundTrip(again)
}
