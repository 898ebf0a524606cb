package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites/check"
)

// loginFlags say how an access token is obtained when the server demands one.
type loginFlags struct {
	none         bool
	client       string
	clientSecret string // name of the variable
	scope        string
	secondUser   bool
	browser      bool
	wait         time.Duration

	stderr io.Writer
}

// loginTime is how long a user has to agree, unless a flag says otherwise.
const loginTime = 5 * time.Minute

func (f *loginFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.none, "no-login", false, "obtain no access token when the server demands one")
	f.registerClient(cmd)
	flags.StringVar(&f.scope, "scope", "", "log in for the scopes `'SCOPE ...'`")
	flags.BoolVar(&f.secondUser, "second-user", false,
		"log in a second time, as another user, whom the server must keep out of the first user's sessions")
	flags.BoolVar(&f.browser, "browser", false, "open the browser where a user has to agree to a login")
	flags.DurationVar(&f.wait, "login-timeout", loginTime, "wait so long for the user")
}

// registerClient declares the flags for a client that an authorization server knows.
func (f *loginFlags) registerClient(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.client, "client-id", "",
		"log in as the client `ID` in place of a client that is registered for the run")
	flags.StringVar(&f.clientSecret, "client-secret-env", "",
		"the secret of --client-id is in the environment variable `VAR`")
}

// configure takes from the configuration what no flag says.
func (f *loginFlags) configure(cmd *cobra.Command, c config.Login) {
	f.stderr = cmd.ErrOrStderr()
	f.none = f.none || c.Off
	if f.client == "" { // a secret belongs to its client
		f.client, f.clientSecret = c.ClientID, cmp.Or(f.clientSecret, c.ClientSecretEnv)
	}
	f.scope = cmp.Or(f.scope, c.Scope)
	f.secondUser = f.secondUser || c.SecondUser
}

// check reports flags that cannot be followed.
func (f *loginFlags) check() error {
	switch {
	case f.clientSecret != "" && (f.client == "" || os.Getenv(f.clientSecret) == ""):
		return fmt.Errorf("--client-secret-env needs --client-id, and a secret in the environment variable %s",
			f.clientSecret)
	case f.wait < 0:
		return errors.New("--login-timeout must be greater than 0")
	}
	return nil
}

// login returns what the flags say, or nil if there must be no login.
func (f *loginFlags) login() *check.Login {
	if f.none {
		return nil
	}
	l := &check.Login{ClientID: f.client, Scope: f.scope, SecondUser: f.secondUser}
	if f.clientSecret != "" {
		l.ClientSecret = os.Getenv(f.clientSecret)
	}
	if f.browser || terminal(f.stderr) {
		l.Consent = &client.Consent{Show: f.show, Wait: cmp.Or(f.wait, loginTime)}
	}
	return l
}

// terminal reports whether a user sees what is written.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// show shows a page to the user.
func (f *loginFlags) show(page, user string) error {
	doing := "open this page and log in"
	if f.browser {
		if err := browse(page); err != nil {
			return fmt.Errorf("open the browser: %w", err)
		}
		doing = "log in on the page that the browser opens"
	}
	if f.stderr == nil {
		return nil
	}
	if user != "" {
		doing += " as " + user
	}
	_, err := fmt.Fprintf(guarded(f.stderr), "mcpconform: %s; mcpconform waits %v for that:\n  %s\n", doing,
		cmp.Or(f.wait, loginTime), page)
	return err
}

// browse opens a page in the browser of the system.
func browse(page string) error {
	name, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	// The browser outlives the run.
	cmd := exec.Command(name, args...) //nolint:gosec,noctx // no shell reads the page, which begins with http
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
