package authserver_test

import (
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/reference/authserver"
)

func TestSecretsIn(t *testing.T) {
	const a, b = "a-Secret-of-28-characters-00", "another+Secret/of=28~1234567"
	for text, want := range map[string][]string{
		`{"access_token":"` + a + `"}`:                                    {a},
		`{"data":[{"code" : "` + a + `","refresh_token": "` + a:           {a, a},
		`"{\"access_token\":\"` + a + `\"}"`:                              {a},
		`access_token=` + a + `&token_type=bearer`:                        {a},
		`client_secret=another%2BSecret%2Fof%3D28~1234567&x=1`:            {"another%2BSecret%2Fof%3D28~1234567", b},
		`{"code":["` + a + `"]}`:                                          {a},
		`<input type="hidden" name="code" value="` + a + `">`:             {a},
		`<input type=hidden name=code value=` + a + `>`:                   {a},
		`{"code":"invalid_client_metadata","message":"` + a + `"}`:        nil,
		`{"code":-32600,"response_types":["code"],"token_type":"Bearer"}`: nil,
		`<p class="code">An explanation-of-what-is-wrong-2-times</p>`:     nil,
	} {
		if got := authserver.SecretsIn(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", text, got, want)
		}
	}
}
