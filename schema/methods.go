package schema

import (
	"slices"
	"strings"
)

// A Party is a side of the protocol: who sends a message, or whom a requirement binds.
type Party string

// The parties. Only Server and Client send messages; the others occur in [Requirement].
const (
	Server              Party = "server"
	Client              Party = "client"
	Both                Party = "both"
	Host                Party = "host"
	AuthorizationServer Party = "authorization-server"
)

// An operation is one method: the definitions of its message and, for a
// request, of its result. The requirement is named only where the result's
// definition serves several methods.
type operation struct {
	method, definition, result, resultRequirement string
}

var clientRequests = []operation{
	{"initialize", "InitializeRequest", "InitializeResult", ""},
	{"ping", "PingRequest", "EmptyResult", "schema.ping-result"},
	{"tools/list", "ListToolsRequest", "ListToolsResult", ""},
	{"tools/call", "CallToolRequest", "CallToolResult", ""},
	{"resources/list", "ListResourcesRequest", "ListResourcesResult", ""},
	{"resources/templates/list", "ListResourceTemplatesRequest", "ListResourceTemplatesResult", ""},
	{"resources/read", "ReadResourceRequest", "ReadResourceResult", ""},
	{"resources/subscribe", "SubscribeRequest", "EmptyResult", "schema.subscribe-result"},
	{"resources/unsubscribe", "UnsubscribeRequest", "EmptyResult", "schema.unsubscribe-result"},
	{"prompts/list", "ListPromptsRequest", "ListPromptsResult", ""},
	{"prompts/get", "GetPromptRequest", "GetPromptResult", ""},
	{"completion/complete", "CompleteRequest", "CompleteResult", ""},
	{"logging/setLevel", "SetLevelRequest", "EmptyResult", "schema.set-level-result"},
}

var serverRequests = []operation{
	{"ping", "PingRequest", "EmptyResult", "schema.ping-result"},
	{"sampling/createMessage", "CreateMessageRequest", "CreateMessageResult", ""},
	{"roots/list", "ListRootsRequest", "ListRootsResult", ""},
	{"elicitation/create", "ElicitRequest", "ElicitResult", ""},
}

var clientNotifications = []operation{
	{method: "notifications/initialized", definition: "InitializedNotification"},
	{method: "notifications/cancelled", definition: "CancelledNotification"},
	{method: "notifications/progress", definition: "ProgressNotification"},
	{method: "notifications/roots/list_changed", definition: "RootsListChangedNotification"},
}

var serverNotifications = []operation{
	{method: "notifications/cancelled", definition: "CancelledNotification"},
	{method: "notifications/progress", definition: "ProgressNotification"},
	{method: "notifications/message", definition: "LoggingMessageNotification"},
	{method: "notifications/tools/list_changed", definition: "ToolListChangedNotification"},
	{method: "notifications/prompts/list_changed", definition: "PromptListChangedNotification"},
	{method: "notifications/resources/list_changed", definition: "ResourceListChangedNotification"},
	{method: "notifications/resources/updated", definition: "ResourceUpdatedNotification"},
}

func requests(sender Party) []operation {
	switch sender {
	case Client:
		return clientRequests
	case Server:
		return serverRequests
	}
	return nil
}

func notifications(sender Party) []operation {
	switch sender {
	case Client:
		return clientNotifications
	case Server:
		return serverNotifications
	}
	return nil
}

func find(operations []operation, method string) (operation, bool) {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.method == method })
	if i < 0 {
		return operation{}, false
	}
	return operations[i], true
}

func methods(operations []operation) []string {
	var names []string
	for _, o := range operations {
		names = append(names, o.method)
	}
	return names
}

// Methods lists the methods of the requests that sender may send.
func Methods(sender Party) []string { return methods(requests(sender)) }

// NotificationMethods lists the methods of the notifications that sender may send.
func NotificationMethods(sender Party) []string { return methods(notifications(sender)) }

// Request returns the definition of a request with this method sent by sender.
// It reports false when the revision has no such request in that direction.
func Request(sender Party, method string) (def string, ok bool) {
	o, ok := find(requests(sender), method)
	return o.definition, ok
}

// Notification returns the definition of a notification with this method sent
// by sender. It reports false when the revision has none in that direction.
func Notification(sender Party, method string) (def string, ok bool) {
	o, ok := find(notifications(sender), method)
	return o.definition, ok
}

// Result returns the definition of the result that answers a request with this
// method. ping is the one request of both sides; its result is the same.
func Result(method string) (def string, ok bool) {
	o, ok := findRequest(method)
	return o.result, ok
}

func findRequest(method string) (operation, bool) {
	if o, ok := find(clientRequests, method); ok {
		return o, true
	}
	return find(serverRequests, method)
}

// RequirementID returns the id of the requirement that a message follows the
// definition: CallToolResult gives schema.call-tool-result. EmptyResult serves
// several methods; use [ResultRequirementID] for results.
func RequirementID(def string) string { return "schema." + kebab(def) }

// ResultRequirementID returns the id of the requirement that the result of a
// request with this method follows its definition, or "" for an unknown method.
func ResultRequirementID(method string) string {
	o, ok := findRequest(method)
	switch {
	case !ok:
		return ""
	case o.resultRequirement != "":
		return o.resultRequirement
	}
	return RequirementID(o.result)
}

// kebab turns CallToolResult into call-tool-result and JSONRPCError into jsonrpc-error.
func kebab(name string) string {
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	var b strings.Builder
	for i := range len(name) {
		startsWord := upper(i) && (!upper(i-1) || (i+1 < len(name) && !upper(i+1)))
		if i > 0 && startsWord {
			b.WriteByte('-')
		}
		b.WriteString(strings.ToLower(name[i : i+1]))
	}
	return b.String()
}

// Messages returns the definitions of all requests, notifications and results.
func Messages() []string {
	var names []string
	add := func(name string, known bool) {
		if known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range []Party{Server, Client} {
		for _, m := range Methods(p) {
			add(Request(p, m))
			add(Result(m))
		}
		for _, m := range NotificationMethods(p) {
			add(Notification(p, m))
		}
	}
	return names
}
