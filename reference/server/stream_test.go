package server

import (
	"slices"
	"testing"
)

// A reader that is slow still has what it was given when so much comes that the
// stream forgets it.
func TestStreamForgetsNothingOfItsReader(t *testing.T) {
	st := newStream("get:1", 1, true)
	for range maxStreamEvents {
		st.put(&Event{})
	}
	given := st.from(0, st.attach()).events
	st.put(&Event{})
	if !st.from(0, 1).lost {
		t.Fatal("the stream has forgotten nothing")
	}
	if slices.Contains(given, nil) {
		t.Error("the reader has lost an event")
	}
}
