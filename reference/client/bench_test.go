package client_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// A call over pipes, in a session whose log grows with each.
func BenchmarkCall(b *testing.B) {
	d := &transport.Stdio{Launcher: transport.Func{Name: "script", Run: func(_ context.Context, in io.Reader, out, _ io.Writer) error {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", wire.Parse(bytes.Clone(lines.Bytes())).ID)
		}
		return nil
	}}}
	limits := wire.Limits{Message: 1 << 16, Total: 1 << 40, Events: 1 << 40}
	conn, err := d.Dial(b.Context(), wire.NewTrace(limits).Connect("stdio", b.Name()))
	if err != nil {
		b.Fatal(err)
	}
	s := client.New(conn, client.Options{})
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	for b.Loop() {
		if _, err := s.Call(b.Context(), "ping", nil); err != nil {
			b.Fatal(err)
		}
	}
}
