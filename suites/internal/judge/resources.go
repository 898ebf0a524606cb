package judge

import (
	"encoding/base64"
	"reflect"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var resourceRules = []Rule{
	{
		Name: "resource identifiers",
		Requirements: []string{ids.ResourcesURIUnique, ids.ResourcesURIRfc3986, ids.ResourcesURISchemeCustomRfc3986,
			ids.ResourcesMimeTypeSyntax, ids.ResourcesTemplateRfc6570},
		Judge: judgeIdentifiers,
	},
	{Name: "resource sizes", Requirements: []string{ids.ResourcesSizeRawBytes}, Judge: judgeSizes},
	{
		Name: "resource subscriptions",
		Requirements: []string{ids.ResourcesUpdatedOnlySubscribed, ids.ResourcesUpdatedEndsWithUnsubscribe,
			ids.ResourcesUnsubscribeAfterSubscribe, ids.ResourcesUpdatedSubResource},
		Judge: judgeSubscriptions,
	},
	{Name: "custom schemes", Requirements: []string{ids.ResourcesURISchemeCustomAllowed}, Judge: judgeCustomSchemes},
}

// standardSchemes are those that server/resources#common-uri-schemes names, and
// http.
var standardSchemes = map[string]bool{"https": true, "http": true, "file": true, "git": true}

func judgeIdentifiers(c *Conversation, rec *Recorder) {
	c.content(func(p *piece) {
		link := p.shape == blockShape && p.value["type"] == "resource_link"
		if p.event.From != wire.Server || p.shape == blockShape && !link {
			return
		}
		if p.shape == templateShape {
			if template, ok := p.value["uriTemplate"].(string); ok {
				problem := schema.CheckFormat("uri-template", template)
				rec.Check(problem == "", ids.ResourcesTemplateRfc6570, wire.Server,
					"the uriTemplate "+wire.Quote(template, 80)+" is "+problem, p.evidence()...)
			}
		} else if uri, ok := p.value["uri"].(string); ok && !p.echoes(uri) {
			judgeURI(uri, p.evidence(), rec)
		}
		if t, ok := p.value["mimeType"].(string); ok {
			rec.Check(isMIMEType(t), ids.ResourcesMimeTypeSyntax, wire.Server, mimeProblem("a resource", p.value),
				p.evidence()...)
		}
	})
	for _, e := range c.notifications(wire.Server, "notifications/resources/updated") {
		if uri, ok := wire.At(e.Msg.Params, "uri").(string); ok {
			judgeURI(uri, []*wire.Event{e}, rec)
		}
	}
	judgeUnique(c, rec, "resources/list", "resources", "uri", ids.ResourcesURIUnique)
}

func judgeURI(uri string, evidence []*wire.Event, rec *Recorder) {
	problem := schema.CheckFormat("uri", uri)
	rec.Check(problem == "", ids.ResourcesURIRfc3986, wire.Server, "the uri "+wire.Quote(uri, 80)+" is "+problem,
		evidence...)
	if s, ok := scheme(uri); ok && !standardSchemes[strings.ToLower(s)] {
		rec.Check(isScheme(s), ids.ResourcesURISchemeCustomRfc3986, wire.Server,
			"the scheme "+wire.Quote(s, 60)+" does not follow RFC 3986", evidence...)
	}
}

// RFC 3986 section 3.1
func isScheme(s string) bool {
	return s != "" && letter(s[0]) &&
		each(s, func(b byte) bool { return alphanumeric(b) || b == '+' || b == '-' || b == '.' })
}

// A size is compared with blobs only: how text was encoded before it was put
// into JSON is unknown. A resource may change between listing and reading, so
// that two reads have to agree.
func judgeSizes(c *Conversation, rec *Recorder) {
	type sized struct {
		listed *wire.Event
		size   float64
		off    *Exchange // a read whose length differed from the size
	}
	resources := make(map[string]*sized)
	for _, x := range c.inOrder() {
		switch x.Method() {
		case "resources/list":
			for _, item := range wire.Items(x.Result(), "resources") {
				uri, _ := wire.At(item, "uri").(string)
				size, ok := floatOf(wire.At(item, "size"))
				known := resources[uri]
				switch {
				case !ok:
					delete(resources, uri)
				case size < 0:
					delete(resources, uri)
					rec.Fail(ids.ResourcesSizeRawBytes, wire.Server,
						"the listed size of "+wire.Quote(uri, 60)+" is negative; a size is a number of bytes",
						x.Response)
				case known == nil || known.size != size:
					resources[uri] = &sized{listed: x.Response, size: size}
				}
			}
		case "resources/read":
			uri, _ := wire.At(x.Request.Msg.Params, "uri").(string)
			known := resources[uri]
			contents, _ := x.Result()["contents"].([]any)
			if known == nil || len(contents) != 1 {
				continue
			}
			blob, _ := wire.At(contents[0], "blob").(string)
			raw, err := base64.StdEncoding.DecodeString(blob)
			if blob == "" || err != nil {
				continue
			}
			switch {
			case float64(len(raw)) == known.size:
				known.off = nil
				rec.Pass(ids.ResourcesSizeRawBytes, wire.Server)
			case known.off != nil && reflect.DeepEqual(contents, known.off.Result()["contents"]):
				rec.Fail(ids.ResourcesSizeRawBytes, wire.Server,
					"the listed size of "+wire.Quote(uri, 60)+" is not the number of bytes that its blob holds",
					known.listed, x.Request, x.Response)
			default:
				known.off = x
			}
		}
	}
}

// inOrder returns the exchanges of the client that were answered, in the order
// of their answers.
func (c *Conversation) inOrder() []*Exchange {
	var all []*Exchange
	for _, e := range c.Messages {
		if x := c.Of(e); x != nil && x.Response == e && x.From() == wire.Client {
			all = append(all, x)
		}
	}
	return all
}

// subscription is what became of the subscription to one URI.
type subscription struct {
	asked bool        // subscribed, and not unsubscribed from since
	ended *wire.Event // the answer to the last unsubscribe, while it holds
}

// server/resources#subscriptions
func judgeSubscriptions(c *Conversation, rec *Recorder) {
	byURI := make(map[string]*subscription)
	some := false
	// Over HTTP, where messages travel on several streams, the order of arrival
	// counts only over a round trip of the client.
	roundTrip := -1
	last := c.lastOf(wire.Client)
	for _, e := range c.Messages {
		x := c.Of(e)
		uri := ""
		if x != nil {
			uri, _ = wire.At(x.Request.Msg.Params, "uri").(string)
		}
		switch {
		case x != nil && x.From() == wire.Client && e == x.Response:
			roundTrip = max(roundTrip, x.Request.Seq)
			if s := byURI[uri]; x.Method() == "resources/unsubscribe" && s != nil && !s.asked &&
				e.Msg.Kind == wire.Result {
				s.ended = e
			}
		case x != nil && x.From() == wire.Client && e == x.Request && x.Method() == "resources/subscribe":
			some = true
			byURI[uri] = &subscription{asked: true}
		case x != nil && x.From() == wire.Client && e == x.Request && x.Method() == "resources/unsubscribe":
			s := byURI[uri]
			rec.Check(s != nil, ids.ResourcesUnsubscribeAfterSubscribe, wire.Client,
				"resources/unsubscribe names "+wire.Quote(uri, 60)+", which was not subscribed to", e)
			if s != nil {
				s.asked = false
			}
		case e.From == wire.Server && e.Msg.Kind == wire.Notification &&
			e.Msg.Method == "notifications/resources/updated":
			updated, ok := wire.At(e.Msg.Params, "uri").(string)
			if !ok {
				continue
			}
			rec.Check(some, ids.ResourcesUpdatedOnlySubscribed, wire.Server,
				"an update of "+wire.Quote(updated, 60)+" came although the client has not subscribed to any resource",
				e)
			s := byURI[updated]
			switch {
			case s == nil && covered(byURI, updated):
				if e.Seq < last {
					rec.Pass(ids.ResourcesUpdatedSubResource, wire.Client)
				}
			case s == nil && below(byURI, updated, func(s *subscription) bool { return !c.past(s, e, roundTrip) }):
				// It may have been on its way when the subscription above it ended.
			case s == nil && some:
				// The server chooses the names of sub-resources.
				rec.Warn(ids.ResourcesUpdatedOnlySubscribed, wire.Server,
					"an update of "+wire.Quote(updated, 60)+
						" came, but the client has subscribed neither to it nor to a resource above it", e)
			case s != nil && !covered(byURI, updated) && c.past(s, e, roundTrip):
				rec.Fail(ids.ResourcesUpdatedEndsWithUnsubscribe, wire.Server,
					"an update of "+wire.Quote(updated, 60)+" came although the client had unsubscribed from it",
					c.Of(s.ended).Request, s.ended, e)
			}
		}
	}
}

// past reports whether an update was certainly sent for a change since the end of a subscription: a server may take a
// moment to tell of a change from before, which may be the doing of other clients. The check that makes the changes
// judges earlier updates. roundTrip is the position of the client's last request that was answered.
func (c *Conversation) past(s *subscription, update *wire.Event, roundTrip int) bool {
	return s.ended != nil && !s.asked && !c.queued(update, s.ended) && update.At-s.ended.At >= Crossing &&
		(roundTrip > s.ended.Seq || c.Transport == transport.NameStdio)
}

// covered reports whether a subscription holds for a URI or for one above it: an
// update may name a sub-resource (schema#resourceupdatednotification).
func covered(byURI map[string]*subscription, uri string) bool {
	return below(byURI, uri, func(s *subscription) bool { return s.asked })
}

// below reports whether a subscription that fits is one to a URI or to one above it.
func below(byURI map[string]*subscription, uri string, fits func(*subscription) bool) bool {
	held := func(prefix string) bool {
		s := byURI[prefix]
		return s != nil && fits(s)
	}
	if held(uri) {
		return true
	}
	const levels = 64
	for range levels {
		i := strings.LastIndexAny(uri, "/?#")
		if i < 0 {
			return false
		}
		if held(uri[:i+1]) || held(uri[:i]) {
			return true
		}
		uri = uri[:i]
	}
	return false
}

// judgeCustomSchemes counts that a client reads resources whose URIs have schemes of
// the server's own.
func judgeCustomSchemes(c *Conversation, rec *Recorder) {
	listed := make(map[string]bool)
	for _, x := range c.inOrder() {
		uri, _ := wire.At(x.Request.Msg.Params, "uri").(string)
		switch s, ok := scheme(uri); {
		case x.Method() == "resources/list":
			listedURIs(x, listed)
		case x.Method() == "resources/read" && x.Result() != nil && listed[uri] && ok &&
			!standardSchemes[strings.ToLower(s)]:
			rec.Pass(ids.ResourcesURISchemeCustomAllowed, wire.Client)
		}
	}
}

// isDirectory reports whether an item of a list is a directory, by its media type.
func isDirectory(item any) bool {
	t, _ := wire.At(item, "mimeType").(string)
	return strings.HasPrefix(t, "inode/")
}
