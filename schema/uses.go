package schema

import "slices"

// A Use is what a party does of its own accord, such as asking for sampling. A message is one if it fits Kinds,
// Methods and Anonymous, and holds one of Members or Types; what is empty fits all.
type Use struct {
	Name string `yaml:"name" json:"name"`
	// By is whose use it is, or "" for either party.
	By Party `yaml:"by" json:"by,omitempty"`
	// Never says what the party never did where there was no such message.
	Never   string   `yaml:"never" json:"never"`
	Kinds   []string `yaml:"kinds" json:"kinds,omitempty"` // request, notification, result or error
	Methods []string `yaml:"methods" json:"methods,omitempty"`
	// Anonymous messages have no id that could be read.
	Anonymous bool     `yaml:"anonymous" json:"anonymous,omitempty"`
	Members   []string `yaml:"members" json:"members,omitempty"` // at any depth
	Types     []string `yaml:"types" json:"types,omitempty"`     // of content
	// HTTP is the method of the HTTP request that is the use instead of a message.
	HTTP string `yaml:"http" json:"http,omitempty"`
	// Authorization says that the use is a request for metadata or a token instead.
	Authorization bool `yaml:"authorization" json:"authorization,omitempty"`
	// Tools says that calls of tools may make a server do it. Token says that only a request with a progress token
	// may.
	Tools bool `yaml:"tools" json:"tools,omitempty"`
	Token bool `yaml:"token" json:"token,omitempty"`
	// Requirements are the patterns of those that are about nothing else.
	Requirements []string `yaml:"requirements" json:"requirements"`
}

// Uses returns all uses. The caller must not change them.
func (r *Revision) Uses() []Use { return r.uses }

// UseOf returns the use by a party that a requirement is about, if it is about nothing else.
func (r *Revision) UseOf(q Requirement, p Party) (Use, bool) {
	i := slices.IndexFunc(r.uses, func(u Use) bool {
		return (u.By == "" || u.By == p) && slices.ContainsFunc(u.Requirements, q.Matches)
	})
	if i < 0 {
		return Use{}, false
	}
	return r.uses[i], true
}
