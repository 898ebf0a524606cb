package schema

import (
	"slices"
	"strings"
)

// An Advice tells the author of a server or client what to do about findings.
type Advice struct {
	// Requirement is the id of a requirement, or the beginning of ids with an asterisk
	// behind it: what is said there holds for those that have no advice of their own.
	Requirement string `yaml:"requirement" json:"requirement"`
	// Advice is one sentence in the imperative.
	Advice string `yaml:"advice" json:"advice"`
}

// covers reports whether the advice is for a requirement, its own or as one of a class.
func (a Advice) covers(id string) bool {
	if start, ok := strings.CutSuffix(a.Requirement, "*"); ok {
		return strings.HasPrefix(id, start)
	}
	return a.Requirement == id
}

// Advice returns the entries of advice.yaml in their order. The caller may change the slice.
func (r *Revision) Advice() []Advice { return slices.Clone(r.advice) }

// AdviceFor returns what the author of a server or client can do about findings of a
// requirement: the entry of its own or else that of the narrowest class. It is "" for
// what is not in the catalogue, and for what is not observable.
func (r *Revision) AdviceFor(id string) string {
	if q, ok := r.Lookup(id); !ok || !q.Observable {
		return ""
	}
	best := Advice{}
	for _, a := range r.advice {
		if a.covers(id) && len(a.Requirement) > len(best.Requirement) || a.Requirement == id {
			best = a
		}
		if best.Requirement == id {
			break
		}
	}
	return best.Advice
}
