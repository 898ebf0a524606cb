package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// browseTime is how long following a page and its redirects may take.
const browseTime = 30 * time.Second

const maxRedirects = 10

// visit opens a page like the browser of a user who grants everything: it follows
// redirects until it reaches the client that waits for the last one. It opens only
// pages on this machine.
func visit(ctx context.Context, page string) error {
	ctx, cancel := context.WithTimeout(ctx, browseTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	stays := func(r *http.Request) error {
		if !transport.Loopback(r.URL.Hostname()) {
			return fmt.Errorf("%s is not on this machine: a person has to open it", wire.Quote(r.URL.Host, 80))
		}
		return nil
	}
	if err := stays(r); err != nil {
		return err
	}
	c := http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return stays(r)
	}}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return err
}
