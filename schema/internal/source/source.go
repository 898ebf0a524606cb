// Package source reads the YAML files beside a revision's schema. The program
// itself embeds what is generated from them; this package serves the developers'
// commands and the tests.
package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/mcpconform/mcpconform/schema"
)

// The files of a revision's folder.
const (
	RequirementsFile = "requirements.yaml"
	GeneratedFile    = "requirements.json"
	positionsFile    = "positions.yaml"
	PositionsJSON    = "positions.json"
	disputedFile     = "disputed.yaml"
	DisputedJSON     = "disputed.json"
	adviceFile       = "advice.yaml"
	AdviceJSON       = "advice.json"
	consequencesFile = "consequences.yaml"
	ConsequencesJSON = "consequences.json"
	sdksFile         = "sdks.yaml"
	SDKsJSON         = "sdks.json"
	usesFile         = "uses.yaml"
	UsesJSON         = "uses.json"
	sdkSignsFile     = "sdk-signs.yaml"
	SDKSignsJSON     = "sdk-signs.json"
	hintsFile        = "hints.yaml"
	HintsJSON        = "hints.json"
	methodsFile      = "methods.yaml"
	MethodsJSON      = "methods.json"
	CoverageFile     = "coverage.yaml"
	OccurrencesFile  = "occurrences.yaml"
	HeadingsFile     = "headings.yaml"
	regradedFile     = "regraded.yaml"
)

// A Keyword is one occurrence of a capital RFC 2119 keyword: the n-th (from 1)
// of its kind within a section.
type Keyword struct {
	Page    string `yaml:"page"`
	Anchor  string `yaml:"anchor"`
	Keyword string `yaml:"keyword"`
	N       int    `yaml:"n"`
}

func (k Keyword) String() string {
	return fmt.Sprintf("%s#%s %s %d", k.Page, k.Anchor, k.Keyword, k.N)
}

// A Coverage line says which requirements an occurrence gave rise to, or why none.
type Coverage struct {
	Page    string   `yaml:"page"`
	Anchor  string   `yaml:"anchor"`
	Keyword string   `yaml:"keyword"`
	N       int      `yaml:"n"`
	IDs     []string `yaml:"ids"`
	Reason  string   `yaml:"reason"`
}

// Key returns the occurrence that the line covers.
func (c Coverage) Key() Keyword { return Keyword{c.Page, c.Anchor, c.Keyword, c.N} }

// A Count says how often a keyword occurs in a section.
type Count struct {
	Page    string `yaml:"page"`
	Anchor  string `yaml:"anchor"`
	Keyword string `yaml:"keyword"`
	Count   int    `yaml:"count"`
}

// Headings are the anchors of the headings of a page.
type Headings struct {
	Page    string   `yaml:"page"`
	Anchors []string `yaml:"anchors"`
}

// Requirements reads requirements.yaml. Unknown keys are errors with their place.
func Requirements(dir string) ([]schema.Requirement, error) {
	return read[schema.Requirement](filepath.Join(dir, RequirementsFile))
}

// Positions reads positions.yaml.
func Positions(dir string) ([]schema.Position, error) {
	return read[schema.Position](filepath.Join(dir, positionsFile))
}

// Disputes reads disputed.yaml.
func Disputes(dir string) ([]schema.Dispute, error) {
	return read[schema.Dispute](filepath.Join(dir, disputedFile))
}

// Advice reads advice.yaml.
func Advice(dir string) ([]schema.Advice, error) {
	return read[schema.Advice](filepath.Join(dir, adviceFile))
}

// Consequences reads consequences.yaml.
func Consequences(dir string) ([]schema.Consequence, error) {
	return read[schema.Consequence](filepath.Join(dir, consequencesFile))
}

// KnownFaults reads sdks.yaml.
func KnownFaults(dir string) ([]schema.KnownFault, error) {
	return read[schema.KnownFault](filepath.Join(dir, sdksFile))
}

// Uses reads uses.yaml.
func Uses(dir string) ([]schema.Use, error) {
	return read[schema.Use](filepath.Join(dir, usesFile))
}

// SDKs reads sdk-signs.yaml.
func SDKs(dir string) ([]schema.SDK, error) {
	return read[schema.SDK](filepath.Join(dir, sdkSignsFile))
}

// Hints reads hints.yaml.
func Hints(dir string) ([]schema.Hint, error) {
	return read[schema.Hint](filepath.Join(dir, hintsFile))
}

// Methods reads methods.yaml.
func Methods(dir string) ([]schema.Method, error) {
	return read[schema.Method](filepath.Join(dir, methodsFile))
}

// Coverages reads coverage.yaml.
func Coverages(dir string) ([]Coverage, error) {
	return read[Coverage](filepath.Join(dir, CoverageFile))
}

// Counts reads occurrences.yaml.
func Counts(dir string) ([]Count, error) {
	return read[Count](filepath.Join(dir, OccurrencesFile))
}

// AllHeadings reads headings.yaml.
func AllHeadings(dir string) ([]Headings, error) {
	return read[Headings](filepath.Join(dir, HeadingsFile))
}

// Regradings reads regraded.yaml.
func Regradings(dir string) ([]Regrading, error) {
	return read[Regrading](filepath.Join(dir, regradedFile))
}

func read[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []T
	if err := yaml.UnmarshalWithOptions(data, &list, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	return list, nil
}

// Generate renders a list as the program embeds it: a JSON array with one entry
// a line.
func Generate[T any](list []T) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, entry := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(entry); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		b.Write(bytes.TrimSpace(line.Bytes()))
	}
	b.WriteString("\n]\n")
	return b.Bytes(), nil
}
