package schema

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// A Level is the strength of a requirement, in the terms of RFC 2119.
type Level string

// The levels. REQUIRED and SHALL count as MUST, RECOMMENDED as SHOULD, OPTIONAL as MAY.
const (
	Must      Level = "MUST"
	MustNot   Level = "MUST NOT"
	Should    Level = "SHOULD"
	ShouldNot Level = "SHOULD NOT"
	May       Level = "MAY"
)

// AsStrongAs reports whether two levels differ at most in that one is the other's negation.
func (l Level) AsStrongAs(other Level) bool {
	return strings.TrimSuffix(string(l), " NOT") == strings.TrimSuffix(string(other), " NOT")
}

// A Basis says what in the specification a requirement rests on.
type Basis string

// The bases. A broken MUST that rests on one of the first three is a failure. On a statement it is a failure only if
// a position of the catalogue defends it. An implied requirement is a SHOULD at most. An example shows one way of
// several: nobody breaks it (Illustrative).
const (
	ByKeyword     Basis = "keyword"   // a sentence with a capital keyword of RFC 2119
	BySchema      Basis = "schema"    // the type definitions of schema.ts
	ByStandard    Basis = "standard"  // a standard that the text makes binding
	ByStatement   Basis = "statement" // the text as a plain fact, or a keyword in small letters
	ByExample     Basis = "example"   // an example or a diagram
	ByImplication Basis = "implied"   // what follows from the text without being said
)

// Unobserved is the kind of the reason why nothing is observed of a requirement.
type Unobserved string

// The kinds.
const (
	Invisible Unobserved = ""          // no other party can see it
	Tolerated Unobserved = "tolerated" // a permission: nothing that a peer does breaks it
	Untried   Unobserved = "untried"   // it could be seen, but is not tried
	Unjudged  Unobserved = "unjudged"  // it is seen, but the text does not say what breaks it
)

// Words returns the kind as reports name it.
func (u Unobserved) Words() string {
	switch u {
	case Tolerated:
		return "tolerated"
	case Untried:
		return "not tried"
	case Unjudged:
		return "not judged"
	}
	return "not observable"
}

// A Requirement is one normative statement of the revision.
type Requirement struct {
	// ID is stable and readable: dotted segments in kebab case.
	ID    string `yaml:"id" json:"id"`
	Level Level  `yaml:"level" json:"level"`
	Basis Basis  `yaml:"basis" json:"basis"`
	// Standard is the document and section where Basis is [ByStandard], such as
	// "RFC 9110, section 15.5.6".
	Standard string `yaml:"standard" json:"standard,omitempty"`
	// Position is the id of the position that defends a MUST where Basis is [ByStatement].
	Position string `yaml:"position" json:"position,omitempty"`
	// Party is whom the statement binds.
	Party Party `yaml:"party" json:"party"`
	// Judged is the party that shows the behaviour, if that differs from Party: one of both parties, or the server
	// that names its authorization server.
	Judged Party `yaml:"judged" json:"judged,omitempty"`
	// Page is the path below the revision's folder without extension, such as
	// basic/transports, or "schema" for what only the type definitions say.
	Page string `yaml:"page" json:"page"`
	// Anchor is a heading of the page, "" for the text above the first one.
	Anchor string `yaml:"anchor" json:"anchor"`
	// Lead and Text find the sentence on the page, see [Source]. Text is empty where the type
	// definition as a whole states the requirement.
	Lead string `yaml:"lead" json:"lead,omitempty"`
	Text string `yaml:"text" json:"text,omitempty"`
	// Summary states the obligation in one sentence.
	Summary string `yaml:"summary" json:"summary"`
	// Sources are further places that state the same.
	Sources []Source `yaml:"sources" json:"sources,omitempty"`
	// Transports limits the statement to stdio, http (Streamable HTTP) or sse
	// (the HTTP+SSE transport of 2024-11-05). Empty means all, custom ones as well.
	Transports []string `yaml:"transports" json:"transports,omitempty"`
	// Capability is the declaration that the statement depends on, such as
	// server.tools.listChanged, or "".
	Capability string `yaml:"capability" json:"capability,omitempty"`
	// Observable says whether the other end of the wire can see it broken.
	Observable bool `yaml:"observable" json:"observable"`
	// Unobserved says of what kind the reason is where Observable is false.
	Unobserved Unobserved `yaml:"unobserved" json:"unobserved,omitempty"`
	// Through lists the requirements whose verdicts show this one, which sums them up or
	// says the same: it is then not observable by itself.
	Through []string `yaml:"through" json:"through,omitempty"`
	// How says how it is tried or, if it is not observable, why not.
	How string `yaml:"how" json:"how"`
	// Violation says what counts as breaking it. Observable entries have it.
	Violation string `yaml:"violation" json:"violation,omitempty"`
	// Advice tells the author of a server or client what to do about findings: one sentence in the imperative, which
	// says more than that the requirement has to be met. Each MUST has one; others may leave it to their class.
	Advice string `yaml:"advice" json:"advice,omitempty"`
	// Config says what a user can configure so that it can be tried: texts of [Hints].
	Config Texts `yaml:"config" json:"config,omitempty"`
}

// A Source is a place in the specification.
type Source struct {
	Page   string `yaml:"page" json:"page"`
	Anchor string `yaml:"anchor" json:"anchor"`
	// Text is the sentence as a text fragment finds it: its first words and its last,
	// with " … " in between, or a few words that stand together. Lead is what stands right
	// before it, where its own words occur earlier on the page.
	Lead string `yaml:"lead" json:"lead,omitempty"`
	Text string `yaml:"text" json:"text,omitempty"`
}

// Place returns where the requirement is stated.
func (r Requirement) Place() Source { return Source{r.Page, r.Anchor, r.Lead, r.Text} }

// JudgedParty returns the party whose behaviour shows whether the requirement
// is met: Judged or, where that is empty, Party.
func (r Requirement) JudgedParty() Party { return cmp.Or(r.Judged, r.Party) }

// Illustrative reports whether the requirement rests on an example alone. An example shows one way and forbids no
// other, so that another way is noted, and is no finding.
func (r Requirement) Illustrative() bool { return r.Basis == ByExample }

// URL returns the address of the sentence in a revision that states the requirement.
func (r Requirement) URL(revision string) string { return r.Place().URL(revision) }

// URL returns the address of the place in a revision.
func (s Source) URL(revision string) string {
	page := s.Page
	// The HTTP+SSE transport is defined by the revision before last.
	if rest, ok := strings.CutPrefix(page, legacyRevision+"/"); ok {
		revision, page = legacyRevision, rest
	}
	address, anchor := site+"/specification/"+revision, s.Anchor
	if s.Page == bestPractices {
		address, page = site+"/docs/"+revision+"/tutorials/security/security_best_practices", ""
		anchor = cmp.Or(renumbered[anchor], anchor)
	}
	if page = strings.TrimSuffix(strings.TrimSuffix(page, "index"), "/"); page != "" {
		address += "/" + page
	}
	if anchor != "" || s.Text != "" {
		address += "#" + escape(anchor)
	}
	if s.Text != "" {
		address += ":~:text=" + directive(s.Lead, s.Text)
	}
	return address
}

// escape writes a text as a part of a fragment.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// directive writes words of a page as the text directive of a URL fragment, in
// which a comma parts them and a hyphen marks those that only lead to the text
// (https://wicg.github.io/scroll-to-text-fragment/#syntax).
func directive(lead, text string) string {
	words := func(text string) string { return strings.ReplaceAll(escape(text), "-", "%2D") }
	var terms []string
	if lead != "" {
		terms = append(terms, words(lead)+"-")
	}
	for term := range strings.SplitSeq(text, " … ") {
		terms = append(terms, words(term))
	}
	return strings.Join(terms, ",")
}

const (
	site           = "https://modelcontextprotocol.io"
	legacyRevision = "2024-11-05"
	// bestPractices left the folder of the revision on 2026-03-25 and stands among the
	// guides since. The old address leads to the text of a later revision.
	bestPractices = "basic/security_best_practices"
)

// renumbered are the anchors of bestPractices that have other numbers where it stands now.
var renumbered = map[string]string{"mitigation-3": "mitigation-4"}

// Catalogue returns all requirements in the order of requirements.yaml. The caller may change the slice, but not what
// the entries refer to.
func (r *Revision) Catalogue() []Requirement { return slices.Clone(r.requirements) }

// Lookup returns the requirement with this id.
func (r *Revision) Lookup(id string) (Requirement, bool) {
	i, ok := r.byID[id]
	if !ok {
		return Requirement{}, false
	}
	return r.requirements[i], true
}

// Nearest returns at most n ids that resemble id, the closest first, to be
// suggested when a user mistyped one.
func (r *Revision) Nearest(id string, n int) []string {
	ids := make([]string, 0, len(r.requirements))
	for _, q := range r.requirements {
		ids = append(ids, q.ID)
	}
	return NearestOf(ids, id, n)
}

// NearestOf returns at most n of the names, those that resemble name most, the closest first.
func NearestOf(names []string, name string, n int) []string {
	if n <= 0 {
		return nil
	}
	name = cut(strings.ToLower(name), 200)
	costs := make(map[string]int, len(names))
	for _, other := range names {
		costs[other] = unlikeness(name, other)
	}
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), strings.Compare(a, b))
	})
	return sorted[:min(n, len(sorted))]
}

// Resembles reports whether name may be a slip for another one: a third of its letters differ, or two.
func Resembles(name, other string) bool {
	return editDistance(cut(name, 200), other) <= max(2, len(name)/3)
}

// unlikeness is the edit distance of two ids less the segments that both have:
// a wrong last segment leaves the neighbours of the right one closest.
func unlikeness(a, b string) int {
	cost := editDistance(a, b)
	segments := strings.Split(b, ".")
	for segment := range strings.SplitSeq(a, ".") {
		if slices.Contains(segments, segment) {
			cost -= len(segment)
		}
	}
	return cost
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
