package schema

import (
	_ "embed"
	"sync"
)

//go:embed 2025-06-18/consequences.json
var consequencesJSON []byte

// A Consequence says that whoever breaks one requirement cannot but break others.
type Consequence struct {
	Cause  string   `yaml:"cause" json:"cause"`
	Brings []string `yaml:"brings" json:"brings"`
	// Why says in one sentence why that is so.
	Why string `yaml:"why" json:"why"`
}

var readConsequences = sync.OnceValues(func() (map[string][]string, error) {
	list, err := embedded[Consequence]("consequences", consequencesJSON)()
	if err != nil {
		return nil, err
	}
	brings := make(map[string][]string)
	for _, c := range list {
		brings[c.Cause] = append(brings[c.Cause], c.Brings...)
	}
	return brings, nil
})

// Consequences returns the requirements that are bound to be broken with another one, by
// the id of that one. The caller must not change it.
func Consequences() (map[string][]string, error) { return readConsequences() }
