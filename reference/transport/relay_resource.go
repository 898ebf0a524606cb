package transport

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// A client knows a protected server behind a relay by the URL of the relay. It has to drop resource metadata whose
// resource is another URL (RFC 9728, section 3.3). The relay therefore puts its own origin in the place of the
// server's, in the resource and in the location of the metadata. An address that is not at the server's origin passes
// as it is, so that a fault of the server stays one. The record holds what the server sent.

// WellKnownResource stands before the path of a resource in the address of its metadata (RFC 9728, section 3.1).
const WellKnownResource = "/.well-known/oauth-protected-resource"

// keepMetadata returns what keeps the response to a request for resource metadata, or nil if it is another request.
func (r *HTTPRelay) keepMetadata(o *outbound, req *http.Request) *kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := req.URL.Path
	if req.Method != http.MethodGet || path == r.site.url.Path ||
		path != r.named && path != WellKnownResource && !strings.HasPrefix(path, WellKnownResource+"/") {
		return nil
	}
	answer := &kept{header: make(http.Header)}
	o.relay = answer
	o.header.Del("Accept-Encoding") // the relay has to read the document
	return answer
}

// atServer reports whether a URL is at the origin of the server.
func (r *HTTPRelay) atServer(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, r.site.url.Scheme) && strings.EqualFold(u.Host, r.site.url.Host)
}

// atRelay returns a URL at the server as one at the relay, and any other text as it is. The host is that by which the
// client reaches the relay.
func (r *HTTPRelay) atRelay(text, host string) string {
	u, err := url.Parse(text)
	if err != nil || !r.atServer(u) {
		return text
	}
	u.Scheme, u.Host = "http", host
	return u.String()
}

// challenged passes a response on. Its challenges name the location of the resource metadata at the relay.
type challenged struct {
	http.ResponseWriter
	relay *HTTPRelay
	host  string
}

// Unwrap is for [http.ResponseController].
func (c *challenged) Unwrap() http.ResponseWriter { return c.ResponseWriter }

var locationParameter = regexp.MustCompile(`(?i)\b(resource_metadata[ \t]*=[ \t]*"?)([^", \t]+)`)

// WriteHeader implements [http.ResponseWriter].
func (c *challenged) WriteHeader(status int) {
	const name = "Www-Authenticate"
	values := c.Header().Values(name)
	c.relay.learn(Challenges(values).Parameters()["resource_metadata"])
	c.Header().Del(name)
	for _, v := range values {
		c.Header().Add(name, locationParameter.ReplaceAllStringFunc(v, func(found string) string {
			part := locationParameter.FindStringSubmatch(found)
			return part[1] + c.relay.atRelay(part[2], c.host)
		}))
	}
	c.ResponseWriter.WriteHeader(status)
}

// learn keeps the path at which the server has its resource metadata.
func (r *HTTPRelay) learn(location string) {
	u, err := url.Parse(location)
	if err != nil || !r.atServer(u) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named = u.Path
}

// passMetadata passes on a response with resource metadata.
func (r *HTTPRelay) passMetadata(w http.ResponseWriter, host string, answer *kept) {
	if answer.body.Len() == mostOfDocument {
		http.Error(w, "the resource metadata are longer than the relay's limit", http.StatusBadGateway)
		return
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	(&challenged{w, r, host}).WriteHeader(answer.status)
	// A client that is gone needs no answer.
	_, _ = w.Write(r.withResource(answer.body.Bytes(), host))
}

// withResource returns resource metadata whose resource is at the relay. All else stays byte for byte.
func (r *HTTPRelay) withResource(metadata []byte, host string) []byte {
	var changed []byte
	done := 0
	d := json.NewDecoder(bytes.NewReader(metadata))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return metadata
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		var resource string
		if name != "resource" || json.Unmarshal(value, &resource) != nil {
			continue
		}
		own, err := json.Marshal(r.atRelay(resource, host))
		if err != nil {
			break
		}
		end := int(d.InputOffset())
		changed = append(append(changed, metadata[done:end-len(value)]...), own...)
		done = end
	}
	return append(changed, metadata[done:]...)
}
