package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPeekEndsTwiceInTheSameWay(t *testing.T) {
	cut := errors.New("the connection is gone")
	for _, err := range []error{nil, cut} {
		var body io.Reader = strings.NewReader(`{"jsonrpc":`)
		if err != nil {
			body = io.MultiReader(body, broken{err})
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", body)
		for range 2 {
			text, got := PeekBody(httptest.NewRecorder(), r)
			if string(text) != `{"jsonrpc":` || !errors.Is(got, err) {
				t.Errorf("with %v: %q, %v", err, text, got)
			}
		}
	}
}
