// Package bundle writes and verifies certification bundles: one zip archive with the
// results of a whole run, the trace that they rest on, and what else a reader needs to
// hold one against the other.
package bundle

import (
	"archive/zip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

//go:embed manifest.schema.json
var manifestSchema []byte

// ManifestSchema returns the JSON Schema (draft 2020-12) of the manifest.
func ManifestSchema() []byte { return slices.Clone(manifestSchema) }

// Format is the version of the form of a bundle.
const Format = 1

// The files of a bundle, in the order in which they stand in the archive.
const (
	ResultsFile       = "results.json"
	TraceFile         = "trace.jsonl"
	ConfigurationFile = "configuration.json"
	ChecklistFile     = "checklist.md"
	ReproduceFile     = "reproduce.md"
	ManifestFile      = "manifest.json"
)

// member is a file of a bundle, with the most bytes that it may have.
type member struct {
	name string
	most int64
}

var members = []member{
	{ResultsFile, 128 << 20},
	{TraceFile, 1 << 30},
	{ConfigurationFile, 4 << 20},
	{ChecklistFile, 128 << 20},
	{ReproduceFile, 4 << 20},
	{ManifestFile, 1 << 20},
}

// MaxSize is the size in bytes above which an archive is refused.
const MaxSize = 512 << 20

// Manifest says what a bundle certifies, and holds the digests of its other files.
type Manifest struct {
	Format   int         `json:"format"`
	Tool     result.Tool `json:"tool"`
	Revision string      `json:"revision"`
	// CatalogueSHA256 is the digest of the requirements that the tool knew.
	CatalogueSHA256 string         `json:"catalogueSha256"`
	Class           Class          `json:"class"`
	Verdict         result.Overall `json:"verdict"` // on the class
	Counts          Counts         `json:"counts"`
	Platform        Platform       `json:"platform"`
	Files           []File         `json:"files"`
}

// Class names a version of a conformance class.
type Class struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	SHA256  string `json:"sha256"`
}

// Counts of the requirements of a class by what became of them.
type Counts struct {
	Passed        int `json:"passed"`
	NotApplicable int `json:"notApplicable"`
	Inconclusive  int `json:"inconclusive"`
	// NotUsed counts those among the inconclusive that are about what the target does not use.
	NotUsed  int `json:"notUsed,omitempty"`
	Disputed int `json:"disputed"`
	// Warned counts recommendations that were broken, and what else only warns.
	Warned int `json:"warned"`
	Broken int `json:"broken"`
	// Undecided counts those about which the tool could not tell.
	Undecided int `json:"undecided"`
}

// Platform on which the run took place.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Go   string `json:"go"`
}

func (p Platform) String() string { return p.OS + "/" + p.Arch + ", " + p.Go }

// File is a file of the bundle.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Configuration is what a run was made with, without secrets.
type Configuration struct {
	// Arguments are those of mcpconform on its command line.
	Arguments []string `json:"arguments"`
	Role      string   `json:"role"`
	Command   []string `json:"command,omitempty"` // of the target
	URL       string   `json:"url,omitempty"`
	Seed      uint64   `json:"seed,omitempty"`
	Thorough  bool     `json:"thorough,omitempty"`
	// Settings are those of the configuration file and the flags that decide what was tried.
	Settings map[string]any `json:"settings,omitempty"`
}

// Contents are what a bundle is made of.
type Contents struct {
	Run           *result.Run
	Trace         *wire.Trace
	Configuration Configuration
	Class         schema.Class
	Platform      Platform
}

// Judge returns the verdict on a class that follows from the results of a whole run. Core
// classes ask what the run asks; in extended ones, what only warns counts too.
func Judge(class schema.Class, run *result.Run) (result.Overall, Counts) {
	of := run.ByID()
	var n Counts
	for _, id := range class.IDs() {
		q := of[id]
		switch {
		case q == nil || q.Verdict == result.Error:
			n.Undecided++
		case q.Disputed != nil && (q.Verdict == result.Fail || q.Verdict == result.Warn):
			n.Disputed++
		case q.Verdict == result.Fail:
			n.Broken++
		case q.Verdict == result.Warn:
			n.Warned++
		case q.Verdict == result.Pass:
			n.Passed++
		case q.Verdict == result.Inconclusive:
			n.Inconclusive++
			if q.NotUsed != "" {
				n.NotUsed++
			}
		default:
			n.NotApplicable++
		}
	}
	switch {
	case run.Verdict == result.NotConformant, n.Broken > 0: // also if that was expected
		return result.NotConformant, n
	case run.Verdict == result.Incomplete, n.Undecided > 0:
		return result.Incomplete, n
	case class.Extent() == schema.ExtendedClass && n.Warned > 0:
		return result.NotConformant, n
	}
	return result.Conformant, n
}

// manifest returns what the manifest says of the contents, without the files.
func (c Contents) manifest() (Manifest, error) {
	catalogue, err := c.Run.Protocol().CatalogueDigest()
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: Format, Tool: c.Run.Tool, Revision: c.Run.Revision, CatalogueSHA256: catalogue,
		Class: Class{c.Class.ID, c.Class.Version, c.Class.SHA256}, Platform: c.Platform,
	}
	m.Verdict, m.Counts = Judge(c.Class, c.Run)
	return m, nil
}

func reproduction(m Manifest, c Configuration) reporters.Reproduction {
	return reporters.Reproduction{
		Tool: m.Tool, Class: fmt.Sprintf("%s version %d", m.Class.ID, m.Class.Version), Platform: m.Platform.String(),
		Arguments: c.Arguments, Seed: c.Seed,
	}
}

// Write writes a bundle: the same bytes for the same contents. The trace is written as
// its Redact leaves it.
func Write(w io.Writer, c Contents) (Manifest, error) {
	m, err := c.manifest()
	if err != nil {
		return m, err
	}
	archive := zip.NewWriter(w)
	for _, f := range []struct {
		name   string
		render func(io.Writer) error
	}{
		{ResultsFile, func(w io.Writer) error { return reporters.JSON(w, c.Run) }},
		{TraceFile, func(w io.Writer) error { _, err := c.Trace.WriteTo(w); return err }},
		{ConfigurationFile, func(w io.Writer) error {
			return reporters.WriteJSON(w, c.Configuration, "configuration")
		}},
		{ChecklistFile, func(w io.Writer) error { return reporters.Checklist(w, c.Run) }},
		{ReproduceFile, func(w io.Writer) error { return reporters.Reproduce(w, reproduction(m, c.Configuration)) }},
		// It has the digests of those before.
		{ManifestFile, func(w io.Writer) error { return reporters.WriteJSON(w, m, "manifest") }},
	} {
		digest, err := add(archive, f.name, f.render)
		if err != nil {
			return m, fmt.Errorf("write bundle: %s: %w", f.name, err)
		}
		if f.name != ManifestFile {
			m.Files = append(m.Files, digest)
		}
	}
	if err := archive.Close(); err != nil {
		return m, fmt.Errorf("write bundle: %w", err)
	}
	return m, nil
}

// add adds a file to the archive, without a time, which would differ each time.
func add(archive *zip.Writer, name string, render func(io.Writer) error) (File, error) {
	out, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return File{}, err
	}
	d := newDigest()
	if err := render(io.MultiWriter(out, d)); err != nil {
		return File{}, err
	}
	return d.file(name), nil
}

// digest takes the size and digest of what is written to it.
type digest struct {
	hash.Hash
	size int64
}

func newDigest() *digest { return &digest{Hash: sha256.New()} }

func (d *digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	return d.Hash.Write(p)
}

func (d *digest) file(name string) File {
	return File{name, d.size, hex.EncodeToString(d.Sum(nil))}
}

// Attest writes an unsigned in-toto statement about a bundle that Write wrote.
func Attest(w io.Writer, run *result.Run, m Manifest, name string, archive []byte) error {
	d := newDigest()
	if _, err := d.Write(archive); err != nil {
		return err
	}
	of := reporters.Attested{
		Subjects: []reporters.Descriptor{reporters.SHA256(name, d.file(name).SHA256)}, Verdict: m.Verdict,
		Configuration: []reporters.Descriptor{reporters.SHA256(fmt.Sprintf("%s version %d", m.Class.ID,
			m.Class.Version), m.Class.SHA256)},
	}
	for _, f := range m.Files {
		if f.Name == ConfigurationFile {
			of.Configuration = append(of.Configuration, reporters.SHA256(f.Name, f.SHA256))
		}
	}
	return reporters.Attestation(w, run, of)
}

// Badge returns what a badge says of a certificate.
func Badge(run *result.Run, m Manifest) (reporters.BadgeText, error) {
	certified := *run
	certified.Verdict = m.Verdict
	b, err := reporters.NewBadge(&certified)
	if strings.HasSuffix(m.Class.ID, "/"+schema.ExtendedClass) {
		b.Message += ", extended"
	}
	return b, err
}
