package server

import "testing"

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		ids    []string
		secret bool
	}{
		{[]string{"1", "2", "3"}, false},
		{[]string{"9", "10", "11"}, false},
		{[]string{"session-1-x", "session-2-x", "session-13-x"}, false},
		{[]string{"1766301234567", "1766301234571", "1766301235002"}, false},
		{[]string{"5f0c6a1e", "9b1d22c4", "00ff12aa"}, false},
		{[]string{"a", "aa", "aaa"}, false},
		{[]string{"665f1c2ab0c3d4e5f6a7b801", "665f1c2ab0c3d4e5f6a7b802", "665f1c2bb0c3d4e5f6a7b803"}, false},
		{[]string{"1868a90c-0f6e-4f0a-9c55-0d0c5b8f8f01", "e2b1a7d4-93c4-4d1f-8a37-6a9f1b0c2d3e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"}, true},
		{[]string{"node7:k3Jd82hQpLzX", "node7:Zz91mQpR0aTw", "node7:0aBcDeFgHiJk"}, true},
		{[]string{"01JZ8YQ4S5T0V9K3M2N1P0QRST", "01JZ8YQ4S6ABCDEFGHJKMNPQRS", "01JZ8YQ4S7ZYXWVTSRQPNMKJHG"}, true},
	} {
		if secret := spread(c.ids) >= unguessable; secret != c.secret {
			t.Errorf("%q: %v bits", c.ids, spread(c.ids))
		}
	}
}
