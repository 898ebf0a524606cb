package schema

// A Consequence says that whoever breaks one requirement cannot but break others.
type Consequence struct {
	Cause  string   `yaml:"cause" json:"cause"`
	Brings []string `yaml:"brings" json:"brings"`
	// Why says in one sentence why that is so.
	Why string `yaml:"why" json:"why"`
}

// Consequences returns the requirements that are bound to be broken with another one, by
// the id of that one. The caller must not change it.
func (r *Revision) Consequences() map[string][]string { return r.brings }
