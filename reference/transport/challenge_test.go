package transport

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChallenges(t *testing.T) {
	type parameters = map[string]string
	for _, tt := range []struct {
		name   string
		values []string
		want   ChallengeList
	}{
		{"none", nil, nil},
		{"scheme alone", []string{"Bearer"}, ChallengeList{{"Bearer", parameters{}}}},
		{"one", []string{`Bearer resource_metadata="https://a.example/b, c"`}, ChallengeList{{"Bearer", parameters{"resource_metadata": "https://a.example/b, c"}}}},
		{"escapes", []string{`Bearer error_description="say \"please\", or go", error = invalid_token`}, ChallengeList{
			{"Bearer", parameters{"error_description": `say "please", or go`, "error": "invalid_token"}},
		}},
		{"several in a line", []string{`Basic realm="x", charset="UTF-8", Bearer Resource_Metadata="https://a.example"`}, ChallengeList{
			{"Basic", parameters{"realm": "x", "charset": "UTF-8"}}, {"Bearer", parameters{"resource_metadata": "https://a.example"}},
		}},
		{"several lines", []string{"Negotiate", `Bearer realm="x"`}, ChallengeList{{"Negotiate", parameters{}}, {"Bearer", parameters{"realm": "x"}}}},
		{"without quotes", []string{"Bearer resource_metadata=https://a.example/b, error=x"}, ChallengeList{
			{"Bearer", parameters{"resource_metadata": "https://a.example/b", "error": "x"}},
		}},
		{"not closed", []string{`Bearer realm="x`}, ChallengeList{{"Bearer", parameters{"realm": "x"}}}},
		{"nonsense", []string{`="x", ,, "`}, nil},
	} {
		if diff := cmp.Diff(tt.want, Challenges(tt.values)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Whatever a server sends, reading it comes to an end.
func FuzzChallenges(f *testing.F) {
	for _, seed := range []string{`Basic realm="x", Bearer a=b`, `"`, "=", "Negotiate YII=", `Bearer a="\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, c := range Challenges([]string{value}) {
			if c.Scheme == "" {
				t.Errorf("%q has a challenge without a scheme", value)
			}
		}
	})
}
