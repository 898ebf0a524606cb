package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Listed returns the last answer to a list request that holds an item of a name, with the
// other items left out where there are many; nil if there is none. It is the premise of
// findings that rest on what the server says of the item.
func (t *T) Listed(method, member, name string) *wire.Event {
	var last *wire.Exchange
	var raw json.RawMessage
	for _, log := range t.Logs() {
		for _, x := range log.Requests(wire.Client, method) {
			if x.Response == nil || last != nil && x.Response.At < last.Response.At {
				continue
			}
			if item := itemOf(x.Response.Raw, member, name); item != nil {
				last, raw = x, item
			}
		}
	}
	if last == nil {
		return nil
	}
	return around(last.Response, raw)
}

// itemOf returns the text of an item in a list result, or nil.
func itemOf(response []byte, member, name string) json.RawMessage {
	var message struct {
		Result map[string]json.RawMessage `json:"result"`
	}
	var items []json.RawMessage
	if json.Unmarshal(response, &message) != nil || json.Unmarshal(message.Result[member], &items) != nil {
		return nil
	}
	i := slices.IndexFunc(items, func(item json.RawMessage) bool {
		var named struct {
			Name any `json:"name"`
		}
		return json.Unmarshal(item, &named) == nil && named.Name == name
	})
	if i < 0 {
		return nil
	}
	return items[i]
}

// around returns an event with only a part of its text. It leaves no margin, which could hold half of a secret. A
// short event stays as it is.
func around(e *wire.Event, part []byte) *wire.Event {
	const short = 500
	i := bytes.Index(e.Raw, part)
	if i < 0 || len(e.Raw) < len(part)+short {
		return e
	}
	after := len(e.Raw) - i - len(part)
	excerpt := *e
	excerpt.Raw = fmt.Appendf(nil, "[%d bytes left out] … %s … [%d bytes left out]", i, part, after)
	excerpt.Dropped += int64(i + after)
	return &excerpt
}
