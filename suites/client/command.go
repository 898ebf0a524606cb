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
	"github.com/mcpconform/mcpconform/schema"
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

// registered returns the variables for a client that an authorization server
// already knows; the last is the one that the official tool sets.
func registered(p Endpoint) [][2]string {
	if p.ClientID == "" {
		return nil
	}
	context, _ := json.Marshal(map[string]string{"name": p.Official, "client_id": p.ClientID, "client_secret": p.ClientSecret})
	return [][2]string{
		{"MCPCONFORM_CLIENT_ID", p.ClientID}, {"MCPCONFORM_CLIENT_SECRET", p.ClientSecret}, {"MCP_CONFORMANCE_CONTEXT", string(context)},
	}
}

// Launch starts the client of a scenario.
func (c Command) Launch(p Endpoint) (transport.Process, error) {
	args, err := c.fill(p)
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.Clone(env)
	for _, v := range append(registered(p), [][2]string{
		{"MCPCONFORM_URL", p.URL}, {"MCPCONFORM_COMMAND", strings.Join(p.Command, " ")},
		{"MCPCONFORM_SCENARIO", p.Scenario}, {"MCPCONFORM_TRANSPORT", p.Transport}, {"MCPCONFORM_ACT", p.UserActions},
		{"MCP_CONFORMANCE_SCENARIO", cmp.Or(p.Official, official)}, {"MCP_CONFORMANCE_PROTOCOL_VERSION", schema.Version},
		{"BROWSER", c.Browser},
	}...) {
		if !slices.Contains(c.Given, v[0]) && (v[0] != "BROWSER" || v[1] != "") {
			env = append(env, v[0]+"="+v[1])
		}
	}
	isolation := c.Isolation
	isolation.Network = true
	// What the client is told to read and to run.
	isolation.Shown = append(slices.Clip(isolation.Shown), p.Dir)
	if len(p.Command) > 0 {
		isolation.Shown = append(isolation.Shown, p.Command[0])
	}
	return transport.Command{Args: args, Dir: c.Dir, Env: env, Isolation: isolation}.Launch()
}

// fill replaces the placeholders or, if there are none, appends the URL or command.
func (c Command) fill(p Endpoint) ([]string, error) {
	used := false
	var args []string
	for _, a := range c.Args {
		was := a
		switch {
		case p.Port != 0:
			a = strings.ReplaceAll(a, transport.PortPlaceholder, strconv.Itoa(p.Port))
		case p.Transport != transport.NameStdio:
			a = strings.ReplaceAll(a, "{url}", p.URL)
		case a == "{command}":
			args = append(args, p.Command...)
			used = true
			continue
		case strings.Contains(a, "{config}"):
			path, err := writeConfig(p)
			if err != nil {
				return nil, err
			}
			a = strings.ReplaceAll(a, "{config}", path)
			fallthrough
		default:
			a = strings.ReplaceAll(a, "{command}", strings.Join(p.Command, " "))
		}
		used = used || a != was
		args = append(args, a)
	}
	switch {
	case used:
	case p.Transport == transport.NameStdio:
		args = append(args, p.Command...)
	case p.URL != "":
		args = append(args, p.URL)
	}
	return args, nil
}

// Config returns an mcpServers file, from which many clients read their servers, with
// the endpoints by name.
func Config(endpoints map[string]Endpoint) ([]byte, error) {
	servers := make(map[string]any, len(endpoints))
	for name, p := range endpoints {
		switch p.Transport {
		case transport.NameStdio:
			servers[name] = map[string]any{"command": p.Command[0], "args": p.Command[1:]}
		case transport.NameCustom:
			servers[name] = map[string]any{"type": "ws", "url": p.URL}
		default:
			servers[name] = map[string]any{"type": p.Transport, "url": p.URL}
		}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	return append(text, '\n'), err
}

func writeConfig(p Endpoint) (string, error) {
	text, err := Config(map[string]Endpoint{"mcpconform": p})
	if err != nil {
		return "", fmt.Errorf("write the configuration of the client: %w", err)
	}
	path := filepath.Join(p.Dir, "mcp.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration of the client: %w", err)
	}
	return path, nil
}
