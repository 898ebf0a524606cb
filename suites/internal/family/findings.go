package family

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Findings are what members of a family show, tried at one place: what several of them show
// of one requirement is one finding.
type Findings struct {
	// Tried are the members that were tried to the end.
	Tried []Member
	// All findings, in the order in which they were made.
	All []*Finding
}

// Finding is what members of a family show of one requirement.
type Finding struct {
	Requirement string
	WarnOnly    bool
	// Smallest is the member that the finding is about. The plain one counts as smaller than
	// all others: what it shows is not due to a value.
	Smallest Member
	// Shown are all members that show it.
	Shown []Member
	// Message and Proof are those of the smallest one.
	Message string
	Proof   []*wire.Event
}

// MostNamed is how many members a finding names beside the smallest one.
const MostNamed = 3

// Add adds what a member shows of a requirement.
func (f *Findings) Add(m Member, requirement, message string, warnOnly bool, proof []*wire.Event) {
	proof = slices.Clone(proof) // the caller's may go on
	i := slices.IndexFunc(f.All, func(x *Finding) bool {
		return x.Requirement == requirement && x.WarnOnly == warnOnly
	})
	if i < 0 {
		f.All = append(f.All, &Finding{
			Requirement: requirement, WarnOnly: warnOnly, Smallest: m, Shown: []Member{m}, Message: message,
			Proof: proof,
		})
		return
	}
	x := f.All[i]
	if !x.Shows(m) {
		x.Shown = append(x.Shown, m)
	}
	if smaller(m, x.Smallest) {
		x.Message, x.Proof, x.Smallest = message, proof, m
	}
}

func smaller(m, than Member) bool {
	return !than.Plain() && (m.Plain() || len(m.Raw()) < len(than.Raw()))
}

// Shows reports whether a member is among those that show the finding.
func (x *Finding) Shows(m Member) bool {
	return slices.ContainsFunc(x.Shown, func(other Member) bool { return other.same(m) })
}

func (m Member) same(other Member) bool { return m.Is == other.Is && m.text == other.text }

// Text returns the message of a finding: it names the smallest member and some of the others, and says
// whether the plain one is as it should be.
func (f *Findings) Text(x *Finding) string {
	message := x.Message
	if !strings.Contains(message, x.Smallest.String()) {
		message = "with " + x.Smallest.String() + ", " + message
	}
	var others []string
	for _, m := range x.Shown {
		if !m.same(x.Smallest) {
			others = append(others, m.String())
		}
	}
	if n := len(others); n > 0 {
		message += "; the same shows with " + strings.Join(others[:min(n, MostNamed)], ", ")
		if n > MostNamed {
			message += fmt.Sprintf(" and %d more", n-MostNamed)
		}
	}
	plain := slices.IndexFunc(f.Tried, Member.Plain)
	if plain >= 0 && !slices.ContainsFunc(x.Shown, Member.Plain) {
		message += "; the ordinary form, " + f.Tried[plain].String() + ", is handled correctly"
	}
	return message
}
