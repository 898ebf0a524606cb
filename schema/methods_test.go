package schema_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
)

// The tables of methods agree with the unions of the schema, which give the sender of each message.
func TestMethodsAgreeWithUnions(t *testing.T) {
	data, err := os.ReadFile("2025-06-18/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]struct {
			AnyOf      []map[string]string
			Properties struct {
				Method struct{ Const string }
			}
		}
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	branches := func(union string) []string {
		var names []string
		for _, branch := range document.Definitions[union].AnyOf {
			names = append(names, strings.TrimPrefix(branch["$ref"], "#/definitions/"))
		}
		return names
	}
	for _, test := range []struct {
		union   string
		sender  schema.Party
		methods func(schema.Party) []string
		find    func(schema.Party, string) (string, bool)
	}{
		{"ClientRequest", schema.Client, schema.Default().Methods, schema.Default().Request},
		{"ServerRequest", schema.Server, schema.Default().Methods, schema.Default().Request},
		{"ClientNotification", schema.Client, schema.Default().NotificationMethods, schema.Default().Notification},
		{"ServerNotification", schema.Server, schema.Default().NotificationMethods, schema.Default().Notification},
	} {
		want := map[string]string{}
		for _, name := range branches(test.union) {
			want[document.Definitions[name].Properties.Method.Const] = name
		}
		got := map[string]string{}
		for _, method := range test.methods(test.sender) {
			name, ok := test.find(test.sender, method)
			if !ok {
				t.Errorf("%s is listed but not found", method)
			}
			got[method] = name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.union, diff)
		}
	}
	for sender, union := range map[schema.Party]string{schema.Client: "ServerResult", schema.Server: "ClientResult"} {
		want := branches(union)
		slices.Sort(want)
		var got []string
		for _, method := range schema.Default().Methods(sender) {
			name, ok := schema.Default().Result(method)
			if !ok {
				t.Errorf("%s has no result", method)
			}
			if !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", union, diff)
		}
	}
}

func TestDirection(t *testing.T) {
	for _, test := range []struct {
		sender schema.Party
		method string
	}{
		{schema.Server, "tools/list"}, {schema.Client, "roots/list"}, {schema.Client, "notifications/cancelled"},
		{schema.Both, "ping"}, {"", "ping"}, {schema.Client, ""}, {schema.Client, "Tools/List"},
	} {
		if def, ok := schema.Default().Request(test.sender, test.method); ok {
			t.Errorf("%s may send the request %s: %s", test.sender, test.method, def)
		}
	}
	for _, test := range []struct {
		sender schema.Party
		method string
	}{
		{schema.Server, "notifications/initialized"}, {schema.Client, "notifications/message"}, {schema.Client, "ping"}, {schema.Both, "notifications/progress"},
	} {
		if def, ok := schema.Default().Notification(test.sender, test.method); ok {
			t.Errorf("%s may send the notification %s: %s", test.sender, test.method, def)
		}
	}
	if def, ok := schema.Default().Result("notifications/initialized"); ok {
		t.Errorf("a notification has the result %s", def)
	}
}

func TestRequirementIDs(t *testing.T) {
	for def, want := range map[string]string{
		"CallToolResult":              "schema.call-tool-result",
		"ToolListChangedNotification": "schema.tool-list-changed-notification",
		"JSONRPCError":                "schema.jsonrpc-error",
		"Tool":                        "schema.tool",
		"RequestId":                   "schema.request-id",
	} {
		if got := schema.Default().RequirementID(def); got != want {
			t.Errorf("%s: got %s, want %s", def, got, want)
		}
	}
	for method, want := range map[string]string{
		"ping":                   "schema.ping-result",
		"logging/setLevel":       "schema.set-level-result",
		"resources/subscribe":    "schema.subscribe-result",
		"resources/unsubscribe":  "schema.unsubscribe-result",
		"tools/call":             "schema.call-tool-result",
		"sampling/createMessage": "schema.create-message-result",
		"tools/none":             "",
	} {
		if got := schema.Default().ResultRequirementID(method); got != want {
			t.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
}
