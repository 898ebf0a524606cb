// Package sdk recognises the SDK on which a target is built: by texts that it alone writes into
// errors, and by the package that is installed beside the command of the target.
package sdk

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Recognise returns the SDK of a party, or nil. The command is that of a local target. The messages on the wire count
// more than the installed package, but only the package tells the version.
func Recognise(revision *schema.Revision, logs []*wire.Log, party wire.Party, command []string) *result.SDK {
	all := revision.SDKs()
	written := signs(logs, party, all)
	var found *result.SDK
	for _, s := range all {
		if text := written[s.Name]; text != "" {
			text = strings.ReplaceAll(text, `\`, "")
			found = &result.SDK{Name: s.Name, Evidence: fmt.Sprintf("it writes '%s' into its errors", text)}
			break
		}
	}
	for _, s := range all {
		if found != nil && found.Name != s.Name {
			continue
		}
		name, version := installed(command, s.Packages)
		switch {
		case name == "":
		case found == nil:
			return &result.SDK{Name: s.Name, Version: version, Evidence: name + " is installed beside its command"}
		default:
			found.Version = version
		}
	}
	return found
}

// signs returns the first sign of each SDK that a party has written, by the SDK's name.
func signs(logs []*wire.Log, party wire.Party, all []schema.SDK) map[string]string {
	written := make(map[string]string)
	for _, l := range logs {
		for _, e := range l.Events() {
			if e.From != party || !refuses(e) {
				continue
			}
			for _, s := range all {
				for _, sign := range s.Signs {
					if written[s.Name] == "" && bytes.Contains(e.Raw, []byte(sign)) {
						written[s.Name] = sign
					}
				}
			}
		}
	}
	return written
}

// refuses reports whether an event is a refusal: a JSON-RPC error, a tool's result that is one,
// or text over HTTP in the place of a message.
func refuses(e *wire.Event) bool {
	if e.Kind != wire.KindMessage || e.Msg == nil {
		return e.Kind == wire.KindBody
	}
	if result, ok := e.Msg.Result.(map[string]any); ok {
		return result["isError"] == true
	}
	return e.Msg.Error != nil
}
