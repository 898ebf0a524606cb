package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
)

// TestLogin reads both forms of the section.
func TestLogin(t *testing.T) {
	for text, want := range map[string]config.Login{
		"login: false": {Off: true},
		"login: true":  {},
		"login: {clientId: me, clientSecretEnv: SECRET, scope: a b, secondUser: true}": {
			ClientID: "me", ClientSecretEnv: "SECRET", Scope: "a b", SecondUser: true},
	} {
		name := filepath.Join(t.TempDir(), config.DefaultFile)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(name, os.LookupEnv)
		if err != nil || c.Login != want {
			t.Errorf("%s: %+v, %v", text, c.Login, err)
		}
	}
}
