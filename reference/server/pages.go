package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// A cursor names the last item of its page and the list, signed with a secret
// of the session, so that an invented one, or one of another list or session,
// is recognised (server/utilities/pagination).

const macSize = 12

func (s *Session) cursor(list, key string) string {
	text := list + "\x00" + key
	return base64.RawURLEncoding.EncodeToString(append(s.mac(text), text...))
}

func (s *Session) mac(text string) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(text))
	return h.Sum(nil)[:macSize]
}

// cursorKey returns the item that a cursor of the list names.
func (s *Session) cursorKey(list, cursor string) (string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < macSize || !hmac.Equal(raw[:macSize], s.mac(string(raw[macSize:]))) {
		return "", false
	}
	return strings.CutPrefix(string(raw[macSize:]), list+"\x00")
}

// page returns the result of a list request: one page of the items, which have keys.
func page[T any](r *Request, list string, items []T, key func(T) string, definition func(T) o) (any, *wire.Error) {
	start := 0
	if value, ok := r.Params["cursor"]; ok {
		cursor, ok := value.(string)
		if !ok {
			return nil, invalid("cursor is %s, not a string", wire.TypeName(value))
		}
		last, ok := r.Session.cursorKey(list, cursor)
		if !ok {
			return nil, invalid("unknown cursor")
		}
		if start = 1 + slices.IndexFunc(items, func(item T) bool { return key(item) == last }); start == 0 {
			return nil, invalid("the cursor has expired")
		}
	}
	end := min(start+r.Session.Server.options.PageSize, len(items))
	shown := []any{}
	for _, item := range items[start:end] {
		shown = append(shown, clone(definition(item)))
	}
	result := map[string]any{list: shown}
	if end < len(items) {
		result["nextCursor"] = r.Session.cursor(list, key(items[end-1]))
	}
	return result, nil
}
