package server

import (
	"slices"
	"testing"
)

// TestStreamForgetsNothingOfItsReader tests that a slow reader keeps its events when the stream forgets them.
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
