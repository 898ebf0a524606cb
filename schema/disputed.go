package schema

import (
	"slices"
	"strings"
)

// A Dispute is a finding that the maintainers of the specification or of SDKs contest.
// It is reported and marked, and counts only in a strict run. docs/disputed.md lists all.
type Dispute struct {
	// ID is stable and in kebab case.
	ID    string `yaml:"id" json:"id"`
	Title string `yaml:"title" json:"title"`
	// Requirement is the id of the one that the finding is about.
	Requirement string `yaml:"requirement" json:"requirement"`
	// Finding is a part of the message of what is contested; "" is every finding of
	// the requirement.
	Finding string `yaml:"finding,omitempty" json:"finding,omitempty"`
	// Fault is the fault of package mockserver that shows the finding.
	Fault   string   `yaml:"fault" json:"fault"`
	Threads []Thread `yaml:"threads" json:"threads"`
	// Position says how mcpconform reads the text, and what that means for the finding.
	Position string `yaml:"position" json:"position"`
}

// A Thread is a public discussion of a dispute.
type Thread struct {
	URL string `yaml:"url" json:"url"`
	// Says is what the maintainers say there.
	Says string `yaml:"says" json:"says"`
}

// Disputes returns all disputes in the order of disputed.yaml. The caller may change
// the slice, but not what the entries refer to.
func (r *Revision) Disputes() []Dispute { return slices.Clone(r.disputes) }

// DisputesFor returns the disputes about a requirement. There may be none.
func (r *Revision) DisputesFor(id string) []Dispute {
	var found []Dispute
	for _, d := range r.disputes {
		if d.Requirement == id {
			found = append(found, d)
		}
	}
	return found
}

// Disputed returns the dispute about a finding of a requirement, if there is one.
func (r *Revision) Disputed(requirement, message string) (Dispute, bool) {
	i := slices.IndexFunc(r.disputes, func(d Dispute) bool {
		return d.Requirement == requirement && strings.Contains(message, d.Finding)
	})
	if i < 0 {
		return Dispute{}, false
	}
	return r.disputes[i], true
}
