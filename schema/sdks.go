package schema

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed 2025-06-18/sdks.json
var sdksJSON []byte

// A KnownFault is a finding that an SDK is known to cause.
type KnownFault struct {
	// ID is stable and in kebab case.
	ID string `yaml:"id" json:"id"`
	// SDK and Versions say in words whose fault it is.
	SDK          string   `yaml:"sdk" json:"sdk"`
	Versions     string   `yaml:"versions" json:"versions"`
	Requirements []string `yaml:"requirements" json:"requirements"`
	// Text is a part of the message of such a finding, or of its evidence; "" if nothing
	// there tells the SDK.
	Text string `yaml:"text,omitempty" json:"text,omitempty"`
	// Certain says that no other implementation is known to write Text.
	Certain bool `yaml:"certain,omitempty" json:"certain,omitempty"`
	// Command lists parts of command lines, of which one must occur if there is a command.
	Command []string `yaml:"command,omitempty" json:"command,omitempty"`
	// Thread is the address of a public discussion, and Says what stands there.
	Thread string `yaml:"thread" json:"thread"`
	Says   string `yaml:"says" json:"says"`
	// Advice says what a user of the SDK can do.
	Advice string `yaml:"advice" json:"advice"`
}

var readKnownFaults = embedded[KnownFault]("faults of SDKs", sdksJSON)

// KnownFaults returns the entries of sdks.yaml in their order. The caller may change the
// slice, but not what the entries refer to.
func KnownFaults() ([]KnownFault, error) {
	list, err := readKnownFaults()
	return slices.Clone(list), err
}

// KnownFaultsFor returns what SDKs are known to do that breaks a requirement, for a target
// with this command line, "" if it has none, and the texts of its findings.
func KnownFaultsFor(requirement, command string, texts []string) []KnownFault {
	list, err := readKnownFaults()
	if err != nil {
		return nil
	}
	var found []KnownFault
	for _, f := range list {
		if !slices.Contains(f.Requirements, requirement) {
			continue
		}
		if f.Text != "" && !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, f.Text) }) {
			continue
		}
		if command != "" && len(f.Command) > 0 && !slices.ContainsFunc(f.Command, func(part string) bool { return strings.Contains(command, part) }) {
			continue
		}
		found = append(found, f)
	}
	return found
}
