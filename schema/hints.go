package schema

import "slices"

// A Hint says what a user can configure so that a requirement can be tried.
type Hint struct {
	Text string `yaml:"text" json:"text"`
	// Party is the target whom the hint helps to judge.
	Party Party `yaml:"party" json:"party"`
	// Transports limits the hint as those of a [Requirement] limit that.
	Transports []string `yaml:"transports" json:"transports,omitempty"`
	// Options are the flags and keys of the configuration that the hint is about, and the acts of a client that it
	// asks for: methods, or progressToken. One of them is enough.
	Options Texts `yaml:"options" json:"options,omitempty"`
}

// Hints returns the hints in the order of hints.yaml. The caller may change the slice, but
// not what the entries refer to.
func (r *Revision) Hints() []Hint { return slices.Clone(r.hints) }

// Fits reports whether a hint helps to judge a party over a transport, when the run already has some options and acts:
// the user has given them, or the run has seen them.
func (h Hint) Fits(p Party, transport string, given []string) bool {
	return (h.Party == p || h.Party == Both) &&
		(len(h.Transports) == 0 || slices.Contains(h.Transports, transport)) &&
		!slices.ContainsFunc(h.Options, func(o string) bool { return slices.Contains(given, o) })
}

// HintsFor returns the texts of the hints of a requirement that fit, as [Hint.Fits] has it.
func (r *Revision) HintsFor(q Requirement, p Party, transport string, given []string) []string {
	var texts []string
	for _, h := range r.hints {
		if slices.Contains(q.Config, h.Text) && h.Fits(p, transport, given) {
			texts = append(texts, h.Text)
		}
	}
	return texts
}

// Texts are several texts, of which YAML may have a single one without a list.
type Texts []string

// UnmarshalYAML reads either form.
func (t *Texts) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*t = Texts{one}
		return nil
	}
	return read((*[]string)(t))
}
