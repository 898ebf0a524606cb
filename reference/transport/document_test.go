package transport

import (
	"errors"
	"strings"
	"testing"
)

// TestDocument: where a peer may lead.
func TestDocument(t *testing.T) {
	const (
		far   = "https://203.0.113.7/mcp"
		inner = "http://10.0.0.5:8080/mcp"
		here  = "http://localhost:3000/mcp"
	)
	for _, tt := range []struct {
		peer, to string
		says     string // of the error; "" for none
	}{
		{far, "https://203.0.113.7/.well-known/a", ""},
		{far, "http://203.0.113.7:9000/a", ""},
		{far, "https://198.51.100.1/a", ""},
		{far, "https://[2001:db8::1]/a", ""},
		{far, "https://auth.example/a", ""}, // until its address is known
		{far, "http://127.0.0.1:6379/", "of this machine"},
		{far, "http://localhost/", "of this machine"},
		{far, "http://LocalHost./", "of this machine"},
		{far, "http://a.localhost/", "of this machine"},
		{far, "http://[::1]/", "of this machine"},
		{far, "http://[::ffff:127.0.0.1]/", "of this machine"},
		{far, "http://0.0.0.0/", "of this machine"},
		{far, "http://0.1.2.3/", "of this machine"},
		{far, "http://10.1.2.3/", "of a private network"},
		{far, "http://192.168.1.1/", "of a private network"},
		{far, "http://100.100.100.200/", "of a private network"},
		{far, "http://[fd00:ec2::254]/", "of a private network"},
		{far, "http://169.254.169.254/latest/meta-data/", "link-local"},
		{far, "http://[fe80::1%25eth0]/", "link-local"},
		{far, "http://[64:ff9b::a9fe:a9fe]/", "link-local"},
		{inner, "http://10.9.9.9/a", ""},
		{inner, "https://198.51.100.1/a", ""},
		{inner, "http://127.0.0.1/", "of this machine"},
		{inner, "http://169.254.169.254/", "link-local"},
		{here, "http://127.0.0.1:9000/a", ""},
		{here, "http://[::1]:9000/a", ""},
		{here, "http://10.0.0.5/a", ""},
		{here, "http://169.254.169.254/", "link-local"},
		{"http://169.254.1.2/mcp", "http://169.254.1.2/a", ""},
		{"http://169.254.1.2/mcp", "http://169.254.1.3/a", "link-local"},
		{"unix:///run/s?path=/mcp", "http://localhost/a", ""},
		{"unix:///run/s?path=/mcp", "http://127.0.0.1:9000/a", ""},
		{here, "file:///etc/passwd", "not the URL of a document"},
		{here, "unix:///var/run/docker.sock?path=/containers/json", "not the URL of a document"},
		{here, "ws://localhost:3000/", "not the URL of a document"},
		{here, "gopher://localhost/", "not the URL of a document"},
		{here, "http:///a", "not the URL of a document"},
		{here, "/etc/passwd", "not the URL of a document"},
		{here, "http://a b/", "not a URL"},
	} {
		_, err := Endpoint{URL: tt.peer}.Document(tt.to)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s may lead to %s: %v; want %q", tt.peer, tt.to, err, tt.says)
		}
	}
}

// A name is decided on again for each address with which a connection is tried.
func TestDocumentBehindName(t *testing.T) {
	e, err := Endpoint{URL: "https://mcp.example/mcp"}.Document("https://auth.example/a")
	if err != nil {
		t.Fatal(err)
	}
	var near *NearError
	if err := e.lead.control(t.Context(), "tcp", "127.0.0.1:443", nil); !errors.As(err, &near) {
		t.Errorf("127.0.0.1: %v", err)
	}
	if err := e.lead.control(t.Context(), "tcp", "198.51.100.1:443", nil); err != nil {
		t.Errorf("198.51.100.1: %v", err)
	}
}
