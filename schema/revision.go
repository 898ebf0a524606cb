package schema

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:generate go run ./generate

// folders holds the folders of all revisions. The sources are YAML. They are embedded as JSON, which is read in a
// tenth of the time at every start.
//
//go:embed 20*/*.json
var folders embed.FS

// DefaultVersion names the revision of a run that asks for no other one. The peers of package mockserver speak it.
const DefaultVersion = "2025-06-18"

// A Revision is a revision of the protocol: its definitions, its methods and its catalogue. It may be used by several
// goroutines at once.
type Revision struct {
	// Version is the name of the revision, such as 2025-06-18.
	Version string
	*Definitions

	methods      []Method
	requirements []Requirement
	byID         map[string]int
	advice       []Advice
	brings       map[string][]string
	positions    []Position
	disputes     []Dispute
	hints        []Hint
	uses         []Use
	sdks         []SDK
	faults       []KnownFault
	classes      func() []Class
}

// An UnknownRevisionError says that a revision is not among those of this program.
type UnknownRevisionError struct {
	Version string
	Known   []string
}

func (e *UnknownRevisionError) Error() string {
	return fmt.Sprintf("revision %q is not supported; %s is", e.Version, strings.Join(e.Known, ", "))
}

// Known returns the names of the revisions that [For] gives, oldest first.
func Known() []string {
	entries, err := folders.ReadDir(".")
	if err != nil {
		return nil // cannot be: the folder is part of this program
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var loaded = struct {
	sync.Mutex
	revisions map[string]*Revision
}{revisions: make(map[string]*Revision)}

// For returns the revision with this name. It is read at the first call. The error is an [*UnknownRevisionError] if
// there is none.
func For(version string) (*Revision, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if r := loaded.revisions[version]; r != nil {
		return r, nil
	}
	if known := Known(); !slices.Contains(known, version) {
		return nil, &UnknownRevisionError{version, known}
	}
	r, err := read(version)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", version, err)
	}
	loaded.revisions[version] = r
	return r, nil
}

// Default returns the revision of [DefaultVersion], for tests and commands that are about no run. Code that has a run
// takes the revision from it.
func Default() *Revision {
	r, err := For(DefaultVersion)
	if err != nil {
		panic(err) // the tests of this package read what is embedded
	}
	return r
}

func read(version string) (*Revision, error) {
	document, err := folders.ReadFile(version + "/schema.json")
	if err != nil {
		return nil, err
	}
	r := &Revision{Version: version, byID: make(map[string]int), brings: make(map[string][]string)}
	if r.Definitions, err = Parse(document); err != nil {
		return nil, fmt.Errorf("schema.json: %w", err)
	}
	var consequences []Consequence
	for name, list := range map[string]any{
		"methods": &r.methods, "requirements": &r.requirements, "advice": &r.advice, "consequences": &consequences,
		"positions": &r.positions, "disputed": &r.disputes, "hints": &r.hints, "uses": &r.uses,
		"sdk-signs": &r.sdks, "sdks": &r.faults,
	} {
		if err := readFile(version, name, list); err != nil {
			return nil, err
		}
	}
	// Only certificates need the classes, which are a fifth of the text.
	r.classes = sync.OnceValue(func() (classes []Class) {
		if err := readFile(version, "classes", &classes); err != nil {
			panic(err) // the tests of this package read what is embedded
		}
		return classes
	})
	for _, c := range consequences {
		r.brings[c.Cause] = append(r.brings[c.Cause], c.Brings...)
	}
	return r, r.index()
}

// readFile decodes a file of a revision into a value.
func readFile(version, name string, into any) error {
	file := name + ".json"
	text, err := folders.ReadFile(version + "/" + file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// index lets the requirements be found by their ids.
func (r *Revision) index() error {
	for i, q := range r.requirements {
		if _, twice := r.byID[q.ID]; twice {
			return errors.New(q.ID + " occurs twice")
		}
		r.byID[q.ID] = i
	}
	return nil
}

// Later reports whether a name is that of a revision after this one. The revision need not be published.
func (r *Revision) Later(name string) bool { return revisionName.MatchString(name) && name > r.Version }

// Earlier reports whether a name is that of a revision before this one.
func (r *Revision) Earlier(name string) bool {
	return revisionName.MatchString(name) && name < r.Version
}
