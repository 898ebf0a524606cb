package judge

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var utilityRules = []Rule{
	{
		Name: "progress",
		Requirements: []string{ids.ProgressTokenUnique, ids.ProgressTokenEcho, ids.ProgressValueIncreases,
			ids.ProgressTokenActiveRequest, ids.ProgressInProgress, ids.ProgressStop, ids.ProgressTokenType},
		Judge: judgeProgress,
	},
	{
		Name: "cancellation",
		Requirements: []string{ids.CancellationSameDirection, ids.CancellationInProgress,
			ids.CancellationNotInitialize},
		Judge: judgeCancellation,
	},
	{
		Name:         "cancelled requests",
		Requirements: []string{ids.CancellationStopProcessing, ids.CancellationNoResponse},
		Judge:        judgeCancelled,
	},
}

// basic/utilities/progress
func judgeProgress(c *Conversation, rec *Recorder) {
	judgeTokens(c, rec)
	var asked map[wire.Party]map[string]*Exchange // requests by the text of their token
	for _, e := range c.Messages {
		if e.Msg.Kind != wire.Notification || e.Msg.Method != "notifications/progress" {
			continue
		}
		if x := c.Of(e); x != nil {
			c.judgeReference(x, e, rec)
			continue
		}
		if asked == nil {
			asked = map[wire.Party]map[string]*Exchange{wire.Client: {}, wire.Server: {}} // the first with each token
			for _, x := range c.Exchanges {
				if x.Token != nil && asked[x.From()][tokenText(x.Token)] == nil {
					asked[x.From()][tokenText(x.Token)] = x
				}
			}
		}
		token := wire.At(e.Msg.Params, "progressToken")
		if x := asked[e.From.Peer()][tokenText(token)]; x != nil && x.Request.Seq < e.Seq &&
			wire.ReadID(token).Usable() {
			rec.Fail(ids.ProgressTokenEcho, e.From, "the token "+wire.Show(x.Token)+" came back as "+wire.Show(token),
				x.Request, e)
			continue
		}
		rec.Fail(ids.ProgressTokenActiveRequest, e.From, "no request has the progress token "+wire.Show(token), e)
	}
	for _, x := range c.Exchanges {
		c.judgeGrowth(x, rec)
	}
}

// tokenText returns a token without regard to its type.
func tokenText(token any) string { return strings.Trim(wire.TokenKey(token), `"`) }

func judgeTokens(c *Conversation, rec *Recorder) {
	latest := map[wire.Party]map[string]*Exchange{wire.Client: {}, wire.Server: {}} // to end, by token
	for _, x := range c.Exchanges {
		if meta, _ := wire.At(x.Request.Msg.Params, "_meta").(map[string]any); meta != nil {
			if token, has := meta["progressToken"]; has {
				rec.Check(wire.ReadID(token).Usable(), ids.ProgressTokenType, x.From(),
					"the progress token is "+wire.Show(token)+", not a string or an integer", x.Request)
			}
		}
		if x.Token == nil {
			continue
		}
		key := wire.TokenKey(x.Token)
		y := latest[x.From()][key]
		// Each message may travel by itself. The request may then have been sent after a cancellation that came later.
		overtaken := c.Transport != transport.NameStdio && y != nil && y.Cancelled != nil &&
			y.Cancelled.At-x.Request.At < overtaking
		switch running := y != nil && c.end(y) > x.Request.Seq && !overtaken && !wire.TooMany(y.Head); {
		case !running:
			rec.Pass(ids.ProgressTokenUnique, x.From())
		case !c.unnamed(x.Request):
			rec.Fail(ids.ProgressTokenUnique, x.From(),
				"the progress token "+wire.Show(x.Token)+" belongs to another request that is still running",
				y.Request, x.Request)
		}
		if y == nil || c.end(x) > c.end(y) {
			latest[x.From()][key] = x
		}
	}
}

// end returns the position in the log up to which a request is certainly running. A cancellation ends a request even
// if an answer follows, a refusal by the transport ends it as well, and an unreadable message may be its answer.
func (c *Conversation) end(x *Exchange) int {
	head := x.Head
	switch {
	case x.Cancelled != nil && (x.Response == nil || x.Cancelled.Seq < x.Response.Seq):
		return x.Cancelled.Seq
	case x.Response != nil:
		return x.Response.Seq
	case head != nil && head.HTTP.Status >= http.StatusBadRequest:
		return head.Seq
	}
	garbled := c.faults[x.From().Peer()].garbled
	if i := sort.SearchInts(garbled, x.Request.Seq); i < len(garbled) {
		return garbled[i]
	}
	return math.MaxInt
}

func (c *Conversation) judgeReference(x *Exchange, e *wire.Event, rec *Recorder) {
	for _, id := range []string{ids.ProgressTokenActiveRequest, ids.ProgressTokenEcho, ids.ProgressTokenType} {
		rec.Pass(id, e.From)
	}
	answer := x.Response
	switch {
	case answer == nil || e.Seq < answer.Seq:
		rec.Pass(ids.ProgressInProgress, e.From)
		if answer != nil {
			rec.Pass(ids.ProgressStop, e.From)
		}
	case e.Stream == answer.Stream, c.sentAfter(e, answer):
		// The response is the one certain end of an operation.
		for _, id := range []string{ids.ProgressStop, ids.ProgressInProgress} {
			rec.Fail(id, e.From, "a progress notification came after the response", x.Request, answer, e)
		}
	}
}

// judgeGrowth judges that the progress value grows with each notification
// (basic/utilities/progress#progress-flow).
func (c *Conversation) judgeGrowth(x *Exchange, rec *Recorder) {
	var last *big.Rat
	var lastEvent *wire.Event
	for _, e := range x.Progress {
		n, ok := wire.At(e.Msg.Params, "progress").(json.Number)
		if !ok || len(n) > 64 {
			continue
		}
		value, ok := ratio(n)
		if !ok {
			continue
		}
		if lastEvent != nil && c.follows(lastEvent, e) && !wire.Momentary(c.Head(lastEvent)) {
			rec.Check(value.Cmp(last) > 0, ids.ProgressValueIncreases, e.From,
				"the progress value is not larger than the one before", lastEvent, e)
		}
		last, lastEvent = value, e
	}
}

// follows reports whether a message was sent after an earlier one of the same
// party: on the same stream, or in a POST that began when that of the other had
// been answered.
func (c *Conversation) follows(before, after *wire.Event) bool {
	if before.Stream == after.Stream {
		return true
	}
	head := c.Head(before)
	return before.From == wire.Client && head != nil && head.Seq < after.Seq
}

// ratio reads a number exactly; huge exponents are refused.
func ratio(n json.Number) (*big.Rat, bool) {
	f, err := n.Float64()
	if err != nil || f > 1e300 || f < -1e300 || f != 0 && f < 1e-300 && f > -1e-300 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// mayBeLost reports whether a request that a server cancels may have been lost:
// before the client listens, a server has no stream for it
// (basic/transports#listening-for-messages-from-the-server). A cancellation with
// the id of another request, in whatever JSON type, means that one.
func mayBeLost(c *Conversation, cancelled *wire.Event, id wire.ID) bool {
	return c.Transport == transport.NameHTTP && cancelled.From == wire.Server &&
		!slices.ContainsFunc(c.Exchanges, func(x *Exchange) bool {
			return x.Request.Msg.ID.Resembles(id)
		})
}

// basic/utilities/cancellation#behavior-requirements
func judgeCancellation(c *Conversation, rec *Recorder) {
	for _, e := range c.Messages {
		if e.Msg.Kind != wire.Notification || e.Msg.Method != "notifications/cancelled" {
			continue
		}
		id := wire.ReadID(wire.At(e.Msg.Params, "requestId"))
		if !id.Usable() {
			continue // the schema judges it
		}
		x := c.Cancels(e)
		if x == nil && c.Transport != transport.NameStdio && c.Newest(e.From, id) != nil {
			continue // the cancellation has overtaken the request
		}
		if x == nil && mayBeLost(c, e, id) {
			rec.Note(ids.CancellationSameDirection, e.From,
				"a cancellation names the id "+id.String()+", but no request with it ever came")
			continue
		}
		if x == nil {
			rec.Fail(ids.CancellationSameDirection, e.From,
				"the sender of the cancellation has made no request with the id "+id.String(), e)
			continue
		}
		rec.Pass(ids.CancellationSameDirection, e.From)
		if x.Method() == "initialize" {
			// A client that cancels only other requests has not shown that it would spare initialize, so nothing
			// passes here.
			rec.Fail(ids.CancellationNotInitialize, e.From, "initialize was cancelled", x.Request, e)
		}
		if use := c.used(x, e); use != nil {
			rec.Fail(ids.CancellationInProgress, e.From, "the sender cancelled a request although it had already "+
				"used the response", x.Request, x.Response, use, e)
		} else {
			rec.Pass(ids.CancellationInProgress, e.From)
		}
	}
	if c.Init != nil && c.Init.Response == nil && c.Init.Cancelled == nil && c.finished(wire.Client) {
		rec.Pass(ids.CancellationNotInitialize, wire.Client) // it gave up without an answer
	}
}

// telling is the length in bytes from which nobody repeats a text by chance.
const telling = 8

// told is what the sender of a request can only know from the response: a cursor, or a sampled text. It is empty if
// there is none, or if the sender refused the message with the response.
func (c *Conversation) told(x *Exchange) string {
	if x.Response == nil {
		return ""
	}
	if head := c.Head(x.Response); head != nil && x.Response.From == wire.Client &&
		head.HTTP.Status >= http.StatusBadRequest {
		return ""
	}
	if cursor, ok := x.Result()["nextCursor"].(string); ok {
		return cursor
	}
	text, _ := wire.At(x.Result(), "content", "text").(string)
	if x.Method() == sampling.method && len(text) >= telling {
		return text
	}
	return ""
}

// makesUse reports whether a message of the sender says what a response to its request told.
func makesUse(e *wire.Event, x *Exchange, told string) bool {
	if x.Method() != sampling.method {
		return e.Msg.Method == x.Method() && wire.At(e.Msg.Params, "cursor") == told
	}
	return slices.ContainsFunc(wire.Items(e.Msg.Result, "content"), func(block any) bool {
		said, ok := wire.At(block, "text").(string)
		return ok && strings.Contains(said, told)
	})
}

// used returns the message in which the sender of a request made use of the response, certainly before an event; nil
// if there is none. The sender had not said before what it repeats, and no other response told it the same.
func (c *Conversation) used(x *Exchange, before *wire.Event) *wire.Event {
	told := c.told(x)
	if told == "" {
		return nil
	}
	elsewhere := math.MaxInt // the position of the first response that told it the same
	for _, other := range c.Exchanges {
		if other != x && other.From() == x.From() && c.told(other) == told {
			elsewhere = min(elsewhere, other.Response.Seq)
		}
	}
	for _, e := range c.Messages {
		switch {
		case e.Seq >= before.Seq || e.Seq > elsewhere:
			return nil
		case e.From != x.From() || !makesUse(e, x, told):
		case e.Seq < x.Response.Seq:
			return nil
		case c.follows(e, before), c.sentAfter(before, e):
			return e
		}
	}
	return nil
}

// After a receiver has read the cancellation of a request, it "SHOULD … Not send a response for the cancelled request"
// (basic/utilities/cancellation#behavior-requirements). The answer to a later request shows that it has read the
// cancellation. If a server cancels, that request has to be on the same stream, as two streams are not ordered. If a
// client cancels over HTTP, it has to be sent after the cancellation was accepted with 202. The answer to one more
// request, sent after that, shows that later messages were not on their way already: over HTTP, a whole exchange would
// have overtaken a POST that was begun before.
func judgeCancelled(c *Conversation, rec *Recorder) {
	durations := sync.OnceValue(c.durations)
	for _, x := range c.Exchanges {
		if x.Cancelled == nil || x.Method() == "initialize" {
			continue
		}
		p := x.From()
		if x.Response != nil && x.Response.Seq < x.Cancelled.Seq {
			continue // the cancellation came too late
		}
		sent := x.Cancelled.Seq
		if (c.Transport == transport.NameHTTP || c.Transport == transport.NameSSE) && p == wire.Client {
			// Messages of their own exchanges may overtake each other.
			head := c.Head(x.Cancelled)
			if head == nil || head.HTTP.Status >= http.StatusBadRequest {
				continue
			}
			sent = head.Seq
		}
		read := within(c.askedBy(p), sent)
		if p == wire.Server {
			read = within(c.answeredOn(x.Cancelled.Stream), sent)
		}
		if read != math.MaxInt {
			read = within(c.askedBy(p), read)
		}
		if c.Transport != "stdio" && c.unknown(x) {
			read = math.MaxInt // only what tells of the cancellation was made after it
		}
		// A POST has to be answered, if only with one JSON object
		// (docs/positions.md, cancelled-post).
		r := x.Response
		owed := c.Transport == transport.NameHTTP && p == wire.Client && r != nil && r.SSE == nil
		grace := Crossing
		if x.Method() == "ping" || strings.HasSuffix(x.Method(), "/list") {
			// There is nothing to stop, and a receiver may ignore the cancellation of what cannot be cancelled
			// (basic/utilities/cancellation#behavior-requirements). After a second it has ignored one that it could
			// heed.
			grace = overtaking
		}
		lasts := x.Response == nil && len(x.Progress) > 0 && lasting(x, durations()) > x.Cancelled.At-x.Request.At+grace
		judgeAfterCancellation(x, read, grace, owed, lasts, c.Events[len(c.Events)-1].At-x.Cancelled.At, rec)
	}
}

// unknown reports whether a cancellation over HTTP may have named a request that its receiver did not know. The
// receiver may ignore it then. This happens if the cancellation came first, or outside of any session.
func (c *Conversation) unknown(x *Exchange) bool {
	begun := len(x.Progress) > 0 && x.Progress[0].Seq < x.Cancelled.Seq
	overtaken := x.Cancelled.Stream != x.Request.Stream && x.Cancelled.At-x.Request.At < Crossing
	carrier := c.Carrier(x.Cancelled)
	stateless := c.Transport == transport.NameHTTP && carrier != nil &&
		carrier.Request.HTTP.Header.Get(headerSession) == ""
	return !begun && overtaken || x.From() == wire.Client && stateless
}

// durations returns how long it took to answer what was asked for and not cancelled.
func (c *Conversation) durations() map[string]time.Duration {
	took := make(map[string]time.Duration)
	for _, x := range c.Exchanges {
		if x.Cancelled == nil && x.Response != nil {
			took[asked(x)] = x.Response.At - x.Request.At
		}
	}
	return took
}

// asked says what a request asks its peer for: all but its metadata.
func asked(x *Exchange) string {
	params, _ := x.Request.Msg.Params.(map[string]any)
	params = maps.Clone(params)
	delete(params, "_meta")
	text, err := json.Marshal(params)
	if err != nil {
		return ""
	}
	return string(x.From()) + " " + x.Method() + " " + string(text)
}

// lasting returns how long a cancelled request takes when it is let be: as long as what
// was asked for likewise, or as long as its progress until the cancellation foretells.
func lasting(x *Exchange, durations map[string]time.Duration) time.Duration {
	if took, known := durations[asked(x)]; known {
		return took
	}
	reported := x.Progress[:sort.Search(len(x.Progress),
		func(i int) bool { return x.Progress[i].Seq > x.Cancelled.Seq })]
	if len(reported) < 2 {
		return 0
	}
	first, last := reported[0], reported[len(reported)-1]
	from, _ := floatOf(wire.At(first.Msg.Params, "progress"))
	to, _ := floatOf(wire.At(last.Msg.Params, "progress"))
	total, _ := floatOf(wire.At(last.Msg.Params, "total"))
	if to <= from || total <= to {
		return 0
	}
	return last.At - x.Request.At + time.Duration(float64(last.At-first.At)*(total-to)/(to-from))
}

// doneShare is the share of its time within which a request may be done and only its response be left to send: the
// cancellation may then be ignored (basic/utilities/cancellation#behavior-requirements).
const doneShare = 4

// judgeAfterCancellation judges a cancelled request whose cancellation has been dealt with at a position in the log.
// A thread may have begun to write the response when another one read the cancellation: a response within the grace is
// no finding, and neither is one that the transport demands. Silence counts if the request would have lasted beyond the
// grace, and once the connection was watched for longer than it took the request to report something.
func judgeAfterCancellation(x *Exchange, read int, grace time.Duration, owed, lasts bool, watched time.Duration,
	rec *Recorder) {
	receiver := x.From().Peer()
	const noResponse, stops = ids.CancellationNoResponse, ids.CancellationStopProcessing
	switch r := x.Response; {
	case owed:
	case r != nil && (failsAs(stated, r) || r.At-x.Cancelled.At >= Crossing && failsAs(cancelled, r)):
		rec.Fail(noResponse, receiver, "the request was cancelled and then answered with a response that says so; "+
			"a cancelled request gets no response", x.Request, x.Cancelled, r)
	case r != nil && r.Seq > read && r.At-x.Cancelled.At >= max(grace, (r.At-x.Request.At)/doneShare):
		rec.Fail(noResponse, receiver, "the request was answered although it had been cancelled well before; a "+
			"cancelled request gets no response", x.Request, x.Cancelled, r)
	case r == nil && read != math.MaxInt && watched >= Crossing:
		rec.Pass(noResponse, receiver)
	}
	late := sort.Search(len(x.Progress), func(i int) bool {
		return x.Progress[i].Seq > read && x.Progress[i].At-x.Cancelled.At >= grace
	})
	switch {
	case late < len(x.Progress) && (x.Response == nil || x.Progress[late].Seq < x.Response.Seq):
		// A receiver that cannot cancel a request may ignore the cancellation
		// (basic/utilities/cancellation#behavior-requirements): the request is then still in progress.
		rec.Fail(stops, receiver, "a progress notification came well after the cancellation", x.Request, x.Cancelled,
			x.Progress[late])
	case lasts && read != math.MaxInt && watched >= max(Crossing, x.Progress[0].At-x.Request.At):
		rec.Pass(stops, receiver)
	}
}

var (
	cancelled = regexp.MustCompile(`(?i)\b(cancell?ed|cancell?ation|aborted)\b`)
	// stated is a text that says nothing but that a call was cancelled.
	stated = regexp.MustCompile(
		`(?i)^[^a-z]*(?:error[^a-z]+)?` +
			`(?:(?:the|this|tool|call|request|operation|execution|context|was|has|been|is) )*cancell?ed[^a-z]*$`)
)

// failsAs reports whether an error, or the failure of a tool, gives a reason that fits a pattern. A text with the
// word cancelled or aborted may speak of something else, so the word alone proves nothing while the response may have
// crossed the cancellation.
func failsAs(reason *regexp.Regexp, r *wire.Event) bool {
	fits := func(text string) bool { return len(text) < 400 && reason.MatchString(text) }
	if r.Msg.Kind == wire.ErrorResponse && r.Msg.Error != nil {
		return fits(r.Msg.Error.Message)
	}
	if wire.At(r.Msg.Result, "isError") != true {
		return false
	}
	return slices.ContainsFunc(wire.Items(r.Msg.Result, "content"), func(block any) bool {
		text, ok := wire.At(block, "text").(string)
		return ok && fits(text)
	})
}
