package config

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"1": 1, "1024": 1 << 10, "512M": 512 << 20, "512MiB": 512 << 20, "2g": 2 << 30, "3kb": 3 << 10, "1T": 1 << 40,
		"": 0, "0": 0, "-1": 0, "M": 0, "1.5G": 0, "9999999999G": 0, "1X": 0,
	} {
		var s Size
		if err := s.Set(text); (err == nil) != (want > 0) || s != want {
			t.Errorf("%q is %d: %v", text, s, err)
		}
		if again := Size(0); want > 0 && (again.Set(s.String()) != nil || again != want) {
			t.Errorf("%q becomes %s", text, s.String())
		}
	}
}
