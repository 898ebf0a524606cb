package family

import "testing"

// Findings on several members are one finding, that of the smallest member.
func TestFindings(t *testing.T) {
	plainly := Of("plain text")
	plainly.Is = plain
	long, short := Of("a longer text"), Of("short")
	long.Is, short.Is = "long", "short"
	f := &Findings{Tried: []Member{plainly, long, short}}
	f.Add(long, "x", "it was refused", false, nil)
	f.Add(short, "x", `"short" (short) was refused`, false, nil)
	f.Add(long, "x", "it was refused twice", false, nil)
	f.Add(long, "x", "it was slow", true, nil)
	if len(f.All) != 2 || !f.All[0].Shows(long) || f.All[0].Shows(plainly) {
		t.Fatalf("got %d findings", len(f.All))
	}
	for i, want := range []string{
		`"short" (short) was refused; the same shows with "a longer text" (long); the ordinary form, "plain text", is handled correctly`,
		`with "a longer text" (long), it was slow; the ordinary form, "plain text", is handled correctly`,
	} {
		if got := f.Text(f.All[i]); got != want {
			t.Errorf("got %s, not %s", got, want)
		}
	}
	f.Add(plainly, "x", "the plain one was refused", false, nil)
	if got, want := f.Text(f.All[0]), `with "plain text", the plain one was refused; the same shows with "a longer text" (long), "short" (short)`; got != want {
		t.Errorf("got %s, not %s", got, want)
	}
	if got := Of(map[string]any{"a": 1}).String(); got != `{"a":1}` {
		t.Errorf("a value of no family is shown as %s", got)
	}
}
