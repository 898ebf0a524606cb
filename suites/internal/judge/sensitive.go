package judge

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// The sentences of an elicitation say what it asks for. A text that plainly asks for a secret of the user breaks
// client/elicitation#user-interaction-model. The label of a property, its title or else its name, proves less about
// the input. A label that names a secret therefore only warns.

// nouns name what is plainly sensitive: what gives access, and what pays or identifies.
const nouns = `((?:pass ?words?|pass ?phrases?|pass ?codes?|pwd|passwort|kennwort|mot de passe|contraseña|senha)` +
	`|(?:login |banking |card |sim |atm )?pin(?: code| number)?` +
	`|(?:api|secret|private|ssh|signing|encryption|recovery|access) ?keys?` +
	`|client secrets?|shared secrets?|credentials` +
	`|(?:(?:personal )?access|auth|authentication|authorization|bearer|refresh|api|session|oauth) ?tokens?` +
	`|(?:git ?hub|git ?lab|slack|bot) ?tokens?` +
	`|one time (?:pass ?words?|pass ?codes?|codes?)|otps?|2fa codes?|mfa codes?|recovery codes?|seed phrases?` +
	`|(?:credit|debit|bank|payment) ?card(?: number| details)?s?|card numbers?|cvv|cvc|cvv2` +
	`|social security numbers?|ssn)`

// The end of a noun is where no other noun follows that takes its place, as in "your
// password hint".
const ends = `(?:[.,;:!?)"']|$` +
	`| (?:to|for|so|and|or|in|into|here|below|again|please|of|from|on|with|before|that|which|at|as|now|is|are)\b)`

// between are words that may stand before a noun.
const between = `((?:[a-z0-9]+ ){0,2})`

// asks are the verbs that ask for what follows.
const asks = `enter|type|type in|provide|give|give us|give me|supply|input|paste|fill in|what is|what's`

var (
	// demanded is a sentence that has the user hand over a secret: the words between the
	// article and the noun, and the noun, are its groups.
	demanded = []*regexp.Regexp{
		regexp.MustCompile(`\b(?:` + asks + `) (?:in |us |me )?(?:(?:the|a|an) )?` + between + nouns + ends),
		regexp.MustCompile(`\b(?:` + asks + `|tell|tell us|tell me|share|confirm|send|send us|submit|specify) ` +
			`(?:in |us |me )?your ` + between + nouns + ends),
		// In a row of things that belong to the user.
		regexp.MustCompile(`\b(?:enter|provide|give|give us|give me|supply|input|fill in) your [a-z0-9]+ and ` +
			between + nouns + ends),
	}
	// owned is a label that names a secret of the user.
	owned = regexp.MustCompile(`^(?:please )?your ` + between + nouns + ends)
	// named is a label whose last word is a secret.
	named = regexp.MustCompile(`^((?:[a-z0-9]+ ){0,3})(` + nouns + `|secret)$`)
	// digits are the secrets that a number can be.
	digits = regexp.MustCompile(`\b(?:pin|codes?|otps?|numbers?|cvv|cvv2|cvc|ssn|pass ?codes?)\b`)
	// acted holds the verbs with which a name asks for an action, and the words with which a sentence says the
	// opposite.
	acted = regexp.MustCompile(
		`^(?:reset|change|forgot|forget|show|hide|has|have|is|use|uses|remember|generate|rotate|require` +
			`|requires|allow|enable|disable|delete|remove|revoke|renew|check|verify|guess` +
			`|no|without|skip|lost|save|store|encrypt)\b`)
	denied = regexp.MustCompile(`\b(?:not|never|don't|dont|without|instead of|no need)\b`)
	// ambiguous are nouns that mean something else unless they are the user's.
	ambiguous = regexp.MustCompile(`^(?:pin|card numbers?)$`)
	// about are words after which a noun is no longer what is asked for.
	about = regexp.MustCompile(`\b(?:of|for|about|to|with|that|if|when|whose|how|where)\b`)
)

// maxRead bounds how much of a text is searched.
const maxRead = 4000

// plain returns a text in lower case with the words of names apart, each by one space.
func plain(text string) string {
	if len(text) > maxRead {
		text = text[:maxRead]
	}
	var words strings.Builder
	lower := false
	for _, r := range text {
		switch {
		case unicode.IsUpper(r) && lower: // camelCase
			words.WriteByte(' ')
			words.WriteRune(unicode.ToLower(r))
		case r == '_' || r == '-' || unicode.IsSpace(r):
			words.WriteByte(' ')
		default:
			words.WriteRune(unicode.ToLower(r))
		}
		lower = unicode.IsLower(r)
	}
	return strings.Join(strings.Fields(words.String()), " ")
}

var sentences = regexp.MustCompile(`[.!?]+(?: |$)|\n`)

// demandsSecret reports whether a sentence of a text has the user hand over a secret.
func demandsSecret(text string) bool {
	return slices.ContainsFunc(sentences.Split(plain(text), -1), func(s string) bool {
		return !denied.MatchString(s) && slices.ContainsFunc(demanded, func(re *regexp.Regexp) bool {
			found := re.FindStringSubmatch(s)
			return found != nil && !about.MatchString(found[1]) &&
				(!ambiguous.MatchString(found[2]) || strings.Contains(found[0], "your "))
		})
	})
}

// isOwned reports whether a label names a secret of the user.
func isOwned(label string) bool {
	found := owned.FindStringSubmatch(plain(label))
	return found != nil && !about.MatchString(found[1])
}

// namesSecret reports whether a label, a name or a title, is that of a secret. The head of "length of the password"
// is the length.
func namesSecret(label string, number bool) bool {
	label = strings.TrimRight(plain(label), " :?.*")
	found := named.FindStringSubmatch(label)
	return found != nil && !about.MatchString(found[1]) && !acted.MatchString(label) &&
		(!number || digits.MatchString(found[2]))
}

// judgeSensitive judges what the user is asked to type, by the message of a request and
// the labels of its properties.
func judgeSensitive(message string, properties map[string]any, names []string, e *wire.Event, rec *Recorder) {
	const id = ids.ElicitationRequestNoSensitive
	clean := true
	fail := func(text string) {
		clean = false
		rec.Fail(id, wire.Server, text, e)
	}
	typed := false
	for _, name := range names {
		property, _ := properties[name].(map[string]any)
		if !takesText(property) {
			continue
		}
		typed = true
		about := "property " + wire.Quote(name, 60)
		title, _ := property["title"].(string)
		description, _ := property["description"].(string)
		number := property["type"] != "string"
		switch {
		case isOwned(title), demandsSecret(title):
			fail("the title of " + about + " asks for a secret: " + wire.Quote(title, 80))
		case isOwned(description), demandsSecret(description):
			fail("the description of " + about + " asks for a secret: " + wire.Quote(description, 120))
		case namesSecret(cmp.Or(title, name), number), namesSecret(description, number):
			clean = false
			rec.Warn(id, wire.Server,
				about+" reads like the name of a secret, but a label does not prove what the user is asked for", e)
		}
	}
	if typed && demandsSecret(message) {
		fail("the message asks for a secret: " + wire.Quote(message, 120))
	}
	if clean {
		rec.Pass(id, wire.Server)
	}
}

// takesText reports whether the user can type into a property what nobody has foreseen: not
// a choice, a date or a yes and no. A number may be a PIN.
func takesText(property map[string]any) bool {
	_, choice := property["enum"]
	_, form := property["format"]
	switch property["type"] {
	case "string":
		return !choice && !form
	case "integer", "number":
		return true
	}
	return false
}
