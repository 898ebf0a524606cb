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
		{"scheme alone", []string{"Bearer"}, ChallengeList{{Scheme: "Bearer", Parameters: parameters{}}}},
		{"one", []string{`Bearer resource_metadata="https://a.example/b, c"`}, ChallengeList{{Scheme: "Bearer", Parameters: parameters{"resource_metadata": "https://a.example/b, c"}}}},
		{"escapes", []string{`Bearer error_description="say \"please\", or go", error = invalid_token`}, ChallengeList{
			{Scheme: "Bearer", Parameters: parameters{"error_description": `say "please", or go`, "error": "invalid_token"}},
		}},
		{"several in a line", []string{`Basic realm="x", charset="UTF-8", Bearer Resource_Metadata="https://a.example"`}, ChallengeList{
			{Scheme: "Basic", Parameters: parameters{"realm": "x", "charset": "UTF-8"}}, {Scheme: "Bearer", Parameters: parameters{"resource_metadata": "https://a.example"}},
		}},
		{"several lines", []string{"Negotiate", `Bearer realm="x"`}, ChallengeList{{Scheme: "Negotiate", Parameters: parameters{}}, {Scheme: "Bearer", Parameters: parameters{"realm": "x"}}}},
		{"without quotes", []string{"Bearer resource_metadata=https://a.example/b, error=x"}, ChallengeList{
			{Scheme: "Bearer", Parameters: parameters{"resource_metadata": "https://a.example/b", "error": "x"}},
		}},
		{"repeated", []string{`Bearer error=a, ERROR="b"`}, ChallengeList{{Scheme: "Bearer", Parameters: parameters{"error": "a"}, Repeated: []string{"error"}}}},
		{"not closed", []string{`Bearer realm="x`}, ChallengeList{{Scheme: "Bearer", Parameters: parameters{"realm": "x"}}}},
		{"nonsense", []string{`="x", ,, "`}, nil},
	} {
		if diff := cmp.Diff(tt.want, Challenges(tt.values)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// FuzzChallenges tests that reading a header ends for any value, and that every challenge has a scheme.
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
