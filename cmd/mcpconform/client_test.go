package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestClientServe runs the command until it has said where the baseline is,
// connects there or not, and interrupts it.
func TestClientServe(t *testing.T) {
	for _, test := range []struct {
		name    string
		connect bool
		code    int
	}{
		{"with a client", true, exitConformant},
		{"without one", false, exitIncomplete},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			report, servers := filepath.Join(dir, "results.json"), filepath.Join(dir, "servers.json")
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			said, stderr := io.Pipe()
			cmd := newRoot()
			cmd.SetErr(stderr)
			cmd.SetArgs([]string{"client", "--serve", "--quiet", "--scenario", "exchange/requests", "--json", report, "--servers", servers})
			go func() {
				defer interrupt()
				for lines := bufio.NewScanner(said); lines.Scan(); {
					if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "baseline" && test.connect {
						_ = reference.Standalone{URL: fields[1]}.Run(ctx)
					}
					if strings.Contains(lines.Text(), "exchange/requests") {
						interrupt()
					}
				}
			}()
			err := cmd.ExecuteContext(ctx)
			_ = stderr.Close()
			var code exitError
			if err != nil && !errors.As(err, &code) || int(code) != test.code {
				t.Errorf("it ended with %v, want exit code %d", err, test.code)
			}
			var run result.Run
			read(t, report, &run)
			if n := run.Counts()[result.Pass]; (n > 0) != test.connect {
				t.Errorf("%d requirements passed", n)
			}
			var config struct {
				Servers map[string]struct {
					URL string `json:"url"`
				} `json:"mcpServers"`
			}
			read(t, servers, &config)
			if s := config.Servers["mcpconform-exchange-requests"]; len(config.Servers) != 2 || !strings.HasPrefix(s.URL, "http://") {
				t.Errorf("the configuration is %+v", config)
			}
		})
	}
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}
