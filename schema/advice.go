package schema

import (
	"slices"
	"strings"
)

// An Advice tells the author of a server or client what to do about findings on a class of requirements.
type Advice struct {
	// Requirement is the beginning of ids with an asterisk behind it.
	Requirement string `yaml:"requirement" json:"requirement"`
	// Advice is one sentence in the imperative.
	Advice string `yaml:"advice" json:"advice"`
}

// Advice returns the entries of advice.yaml in their order. The caller may change the slice.
func (r *Revision) Advice() []Advice { return slices.Clone(r.advice) }

// AdviceFor returns what the author of a server or client can do about findings of a requirement: its own advice or
// else that of the narrowest class. It is "" for a requirement that is not in the catalogue or not observable.
func (r *Revision) AdviceFor(id string) string {
	q, ok := r.Lookup(id)
	if !ok || !q.Observable {
		return ""
	}
	if q.Advice != "" {
		return q.Advice
	}
	best, advice := -1, ""
	for _, a := range r.advice {
		if start := strings.TrimSuffix(a.Requirement, "*"); strings.HasPrefix(id, start) && len(start) > best {
			best, advice = len(start), a.Advice
		}
	}
	return advice
}
