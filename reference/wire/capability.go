package wire

import "strings"

// needed are the capabilities that requests and notifications need, by method. A capability is named by the path of its
// members with dots, as in "resources.subscribe".
var needed = map[string]string{
	"tools/list":                       "tools",
	"tools/call":                       "tools",
	"notifications/tools/list_changed": "tools.listChanged",

	"prompts/list":                       "prompts",
	"prompts/get":                        "prompts",
	"notifications/prompts/list_changed": "prompts.listChanged",

	"resources/list":                       "resources",
	"resources/templates/list":             "resources",
	"resources/read":                       "resources",
	"resources/subscribe":                  "resources.subscribe",
	"resources/unsubscribe":                "resources.subscribe",
	"notifications/resources/list_changed": "resources.listChanged",
	"notifications/resources/updated":      "resources.subscribe",

	"completion/complete":   "completions",
	"logging/setLevel":      "logging",
	"notifications/message": "logging",

	"sampling/createMessage":           "sampling",
	"elicitation/create":               "elicitation",
	"roots/list":                       "roots",
	"notifications/roots/list_changed": "roots.listChanged",
}

// Capability returns the capability that a request or notification of a method needs, or "": only capabilities that
// were negotiated are used (basic/lifecycle#operation).
func Capability(method string) string { return needed[method] }

// Declares reports whether capabilities, as a party declares them in the handshake, have one, such as
// "tools.listChanged". An object counts by its presence, a flag by being true.
func Declares(capabilities map[string]any, capability string) bool {
	v := At(any(capabilities), strings.Split(capability, ".")...)
	if flag, ok := v.(bool); ok {
		return flag
	}
	return v != nil
}
