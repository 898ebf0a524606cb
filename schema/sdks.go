package schema

import (
	"slices"
	"strconv"
	"strings"
)

// An SDK says how one is recognised.
type SDK struct {
	Name string `yaml:"sdk" json:"sdk"`
	// Signs are texts that this SDK alone is known to write into the errors that it answers with.
	Signs []string `yaml:"signs" json:"signs"`
	// Packages are its names in the registry of its language, the latest one last.
	Packages []string `yaml:"packages" json:"packages,omitempty"`
}

// SDKs returns the entries of sdk-signs.yaml in their order. The caller may change the slice,
// but not what the entries refer to.
func (r *Revision) SDKs() []SDK { return slices.Clone(r.sdks) }

// A KnownFault is a finding that an SDK is known to cause.
type KnownFault struct {
	// ID is stable and in kebab case.
	ID string `yaml:"id" json:"id"`
	// SDK and Versions say in words whose fault it is.
	SDK      string `yaml:"sdk" json:"sdk"`
	Versions string `yaml:"versions" json:"versions"`
	// Mended is the first version without the fault, "" if there is none yet.
	Mended       string   `yaml:"mended,omitempty" json:"mended,omitempty"`
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

// KnownFaults returns the entries of sdks.yaml in their order. The caller may change the
// slice, but not what the entries refer to.
func (r *Revision) KnownFaults() []KnownFault { return slices.Clone(r.faults) }

// Fits reports whether the fault shows in a finding about a requirement, of which texts are the
// message and the evidence.
func (f KnownFault) Fits(requirement string, texts []string) bool {
	return slices.Contains(f.Requirements, requirement) &&
		(f.Text == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, f.Text) }))
}

// MendedIn reports whether a version of the SDK is one without the fault. It is not if the
// version is not known.
func (f KnownFault) MendedIn(version string) bool {
	if f.Mended == "" || version == "" {
		return false
	}
	got, first := strings.Split(version, "."), strings.Split(f.Mended, ".")
	for i, part := range first {
		want, _ := strconv.Atoi(part)
		n := 0
		if i < len(got) {
			n, _ = strconv.Atoi(got[i])
		}
		if n != want {
			return n > want
		}
	}
	return true
}

// KnownFaultsFor returns what SDKs are known to do that breaks a requirement, for a target
// with this command line, "" if it has none, and the texts of its findings.
func (r *Revision) KnownFaultsFor(requirement, command string, texts []string) []KnownFault {
	var found []KnownFault
	for _, f := range r.faults {
		named := func(part string) bool { return strings.Contains(command, part) }
		if f.Fits(requirement, texts) && (command == "" || len(f.Command) == 0 ||
			slices.ContainsFunc(f.Command, named)) {
			found = append(found, f)
		}
	}
	return found
}
