package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// Command launches a client that is a program.
type Command struct {
	// Args are the program and its arguments, with placeholders: {url},
	// {command}, {config} and, for a custom transport that listens at one, {port}.
	Args []string
	Dir  string
	// Env is the environment, NAME=value; nil inherits ours.
	Env []string
	// Browser is the command that opens a page in place of a user; %s in it stands
	// for the page. "" leaves the variable BROWSER alone.
	Browser string
	// Given names variables that the user has set and that stay as they are.
	Given []string
	// Isolation of the client, which keeps the network: the servers are there.
	Isolation transport.Isolation
}

// official is the scenario of the official conformance tool that is named unless a
// scenario has its own: clients written for the tool choose their behaviour by it,
// and here connect and list the tools. Versions 0.2 also name the revision.
const official = "initialize"

// Launch starts the client of a scenario.
func (c Command) Launch(e Endpoint) (transport.Process, error) {
	args, err := c.fill(e)
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.Clone(env)
	var registered [][2]string // for a client that an authorization server already knows
	if e.ClientID != "" {
		context, _ := json.Marshal(map[string]string{"name": e.Official, "client_id": e.ClientID,
			"client_secret": e.ClientSecret})
		registered = [][2]string{
			{"MCPCONFORM_CLIENT_ID", e.ClientID}, {"MCPCONFORM_CLIENT_SECRET", e.ClientSecret},
			{"MCP_CONFORMANCE_CONTEXT", string(context)}, // as the official tool sets it
		}
	}
	for _, v := range append(registered, [][2]string{
		{"MCPCONFORM_URL", e.URL}, {"MCPCONFORM_COMMAND", strings.Join(e.Command, " ")},
		{"MCPCONFORM_SCENARIO", e.Scenario}, {"MCPCONFORM_TRANSPORT", e.Transport}, {"MCPCONFORM_ACT", e.UserActions},
		{"MCP_CONFORMANCE_SCENARIO", cmp.Or(e.Official, official)},
		{"MCP_CONFORMANCE_PROTOCOL_VERSION", e.Revision},
		{"BROWSER", c.Browser},
	}...) {
		if !slices.Contains(c.Given, v[0]) && (v[0] != "BROWSER" || v[1] != "") {
			env = append(env, v[0]+"="+v[1])
		}
	}
	isolation := c.Isolation
	isolation.Network = true
	// The file and the command that the client is told to use.
	isolation.Shown = append(slices.Clip(isolation.Shown), e.Dir)
	if len(e.Command) > 0 {
		isolation.Shown = append(isolation.Shown, e.Command[0])
	}
	return transport.Command{Args: args, Dir: c.Dir, Env: env, Isolation: isolation}.Launch()
}

// fill replaces the placeholders or, if there are none, appends the URL or command.
func (c Command) fill(e Endpoint) ([]string, error) {
	used := false
	var args []string
	for _, a := range c.Args {
		was := a
		switch {
		case e.Port != 0:
			a = strings.ReplaceAll(a, transport.PortPlaceholder, strconv.Itoa(e.Port))
		case e.Transport != transport.NameStdio:
			a = strings.ReplaceAll(a, "{url}", e.URL)
		case a == "{command}":
			args = append(args, e.Command...)
			used = true
			continue
		case strings.Contains(a, "{config}"):
			path, err := writeConfig(e)
			if err != nil {
				return nil, err
			}
			a = strings.ReplaceAll(a, "{config}", path)
			fallthrough
		default:
			a = strings.ReplaceAll(a, "{command}", strings.Join(e.Command, " "))
		}
		used = used || a != was
		args = append(args, a)
	}
	switch {
	case used:
	case e.Transport == transport.NameStdio:
		args = append(args, e.Command...)
	case e.URL != "":
		args = append(args, e.URL)
	}
	return args, nil
}

// Config returns an mcpServers file, from which many clients read their servers, with
// the endpoints by name.
func Config(endpoints map[string]Endpoint) ([]byte, error) {
	servers := make(map[string]any, len(endpoints))
	for name, e := range endpoints {
		switch e.Transport {
		case transport.NameStdio:
			servers[name] = map[string]any{"command": e.Command[0], "args": e.Command[1:]}
		case transport.NameCustom:
			servers[name] = map[string]any{"type": "ws", "url": e.URL}
		default:
			servers[name] = map[string]any{"type": e.Transport, "url": e.URL}
		}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	return append(text, '\n'), err
}

func writeConfig(e Endpoint) (string, error) {
	text, err := Config(map[string]Endpoint{"mcpconform": e})
	if err != nil {
		return "", fmt.Errorf("write the configuration of the client: %w", err)
	}
	path := filepath.Join(e.Dir, "mcp.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration of the client: %w", err)
	}
	return path, nil
}
