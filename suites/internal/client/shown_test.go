package client

import (
	"testing"

	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestSameURI(t *testing.T) {
	for _, same := range [][2]string{
		{"TEST://MCP.example/x", "test://mcp.example/x"},
		{"http://mcp.example", "http://mcp.example:80/"},
		{"test://mcp/%7ea%2f", "test://mcp/~a%2F"},
		{"test://mcp/one/./two/../three", "test://mcp/one/three"},
		{"test://mcp/..", "test://mcp/"},
		{"test:opaque", "TEST:opaque"},
	} {
		if !sameURI(same[0], same[1]) {
			t.Errorf("%s is not %s: %s, %s", same[0], same[1], normalURI(same[0]), normalURI(same[1]))
		}
	}
	for _, other := range [][2]string{
		{"test://mcp/X", "test://mcp/x"},
		{"test://mcp", "test://mcp/"},
		{"test://mcp/a%2Fb", "test://mcp/a/b"},
		{"test://mcp/x?b&a", "test://mcp/x?a&b"},
		{"test://mcp/x#y", "test://mcp/x"},
		{"test://User@mcp/", "test://user@mcp/"},
		{"test://mcp//x", "test://mcp/x"},
	} {
		if sameURI(other[0], other[1]) {
			t.Errorf("%s is %s", other[0], other[1])
		}
	}
}

// A changed name leads to the one that it was made of, and to no other.
func TestResembles(t *testing.T) {
	for _, name := range []string{"names", "uris"} {
		members := family.Choice{Budget: result.Thorough}.Draw(name, "")
		for _, m := range members {
			for _, other := range members {
				if m.Is != other.Is && resembles(m.Str(), other.Str()) {
					t.Errorf("%s resembles %s", m, other)
				}
			}
		}
	}
	for text, of := range map[string]string{
		"mcpconform_capitals": "McpConform_Capitals", "mcpconform_é": "mcpconform_e\u0301", "mcp_dotted_v1": "mcp.dotted.v1",
		"test://mcp/a/b": "test://mcp/a%2Fb", "test://mcp/x": "test://mcp/x?y=z", "test://mcp/y": "test://mcp/y#z",
		"mcpconform-long-name-mcpconform-long": "mcpconform-long-name-mcpconform-long-name",
	} {
		if !resembles(text, of) {
			t.Errorf("%s does not resemble %s", text, of)
		}
	}
}
