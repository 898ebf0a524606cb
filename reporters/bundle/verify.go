package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A Refusal is a reason why a bundle is not what it says.
type Refusal struct {
	Where string // the file, and in it the requirement
	Why   string
}

// Verification says what came of verifying a bundle.
type Verification struct {
	Manifest Manifest    // as far as it could be read
	Run      *result.Run // nil if it could not be read
	Refusals []Refusal
	// OtherCatalogue says that the bundle was made with other requirements: only a
	// version that knows them can judge its trace again.
	OtherCatalogue bool
	// Rechecked says what was found in the trace; it is empty if that was not judged.
	Rechecked suites.Rechecked
	// Digests of all files of the bundle, by name.
	Digests map[string]string
	// Attested says of the attestation that was compared, if any, how many signatures its
	// envelope has. None of them is verified.
	Attested   bool
	Signatures int
}

// Accepted reports whether nothing speaks against the bundle.
func (v *Verification) Accepted() bool { return len(v.Refusals) == 0 && !v.OtherCatalogue }

func (v *Verification) refuse(where, format string, args ...any) {
	v.Refusals = append(v.Refusals, Refusal{where, fmt.Sprintf(format, args...)})
}

// Attestation compares a statement with the archive that it should be about, and with its
// verdict. The error says why it cannot be read.
func (v *Verification) Attestation(statement io.Reader, archive io.Reader) error {
	s, signatures, err := reporters.ReadAttestation(statement)
	if err != nil {
		return err
	}
	v.Attested, v.Signatures = true, signatures
	d := newDigest()
	if _, err := io.Copy(d, io.LimitReader(archive, MaxSize+1)); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	if sum := d.file("").SHA256; !s.About(sum) {
		v.refuse(attestation, "is not about this bundle: none of its subjects has the SHA-256 %s", sum)
		return nil
	}
	passed := s.Predicate.Result == reporters.TestPassed || s.Predicate.Result == reporters.TestWarned
	if passed != (v.Manifest.Verdict == result.Conformant) {
		v.refuse(attestation, "says %s; the verdict of the manifest is %s", wire.Quote(string(s.Predicate.Result), 40),
			v.Manifest.Verdict)
	}
	return nil
}

// attestation is where a refusal is that is about a statement.
const attestation = "the attestation"

// wholeBundle is where a refusal is that is not about one file.
const wholeBundle = "the bundle"

// Verify holds a bundle of so many bytes against itself: digests, completeness, the class,
// and the results against the trace, which is judged again. now bounds when it can have
// been made.
func Verify(r io.ReaderAt, size int64, now time.Time) *Verification {
	v := &Verification{Digests: make(map[string]string)}
	files := v.open(r, size)
	if files == nil {
		return v
	}
	manifest, results, configuration := v.read(files, ManifestFile), v.read(files, ResultsFile), v.read(files,
		ConfigurationFile)
	if manifest != nil && v.strict(ManifestFile, manifest, &v.Manifest) && v.Manifest.Format != Format {
		v.refuse(ManifestFile, "has format %d; this version reads format %d", v.Manifest.Format, Format)
	}
	trace := v.readTrace(files)
	for _, name := range []string{ChecklistFile, ReproduceFile} {
		v.take(files[name], io.Discard)
	}
	v.digests(files)
	if len(v.Refusals) > 0 {
		return v
	}
	v.readResults(results)
	v.readConfiguration(configuration)
	if v.Run == nil {
		return v
	}
	v.origin()
	v.whole()
	v.run(now)
	v.rendered(ChecklistFile, "the checklist that follows from results.json",
		func(w io.Writer) error { return reporters.Checklist(w, v.Run) })
	if v.OtherCatalogue || trace == nil {
		return v
	}
	rechecked, err := suites.Recheck(v.Run, trace)
	if err != nil {
		v.refuse(TraceFile, "cannot be judged: %s", err)
		return v
	}
	v.Rechecked = rechecked
	for _, d := range rechecked.Discrepancies {
		where := ResultsFile
		if d.Requirement != "" {
			where += ", " + d.Requirement
		}
		v.refuse(where, "%s", d.Message)
	}
	return v
}

// The end of an archive that has no comment: a record of this length, in which these
// members stand (APPNOTE.TXT, section 4.3.16).
const (
	endLength     = 22
	endSignature  = 0x06054b50
	mostDirectory = 4 << 10 // bytes; a directory of the few files is far smaller
)

// open reads the directory of the archive, and returns its files, or nil if they are not
// exactly those of a bundle.
func (v *Verification) open(r io.ReaderAt, size int64) map[string]*zip.File {
	if size > MaxSize {
		v.refuse(wholeBundle, "has %d bytes, more than %d", size, MaxSize)
		return nil
	}
	// The library reads a directory of any length, so this one is measured first.
	var end [endLength]byte
	if size < endLength {
		v.refuse(wholeBundle, "is not a zip archive: it has %d bytes", size)
		return nil
	}
	if _, err := r.ReadAt(end[:], size-endLength); err != nil {
		v.refuse(wholeBundle, "cannot be read: %s", err)
		return nil
	}
	length, start := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	switch {
	case binary.LittleEndian.Uint32(end[:]) != endSignature:
		v.refuse(wholeBundle, "is not a zip archive, or something follows the archive")
		return nil
	case length > mostDirectory || start+length != size-endLength:
		v.refuse(wholeBundle,
			"has a directory of %d bytes at byte %d; it should take at most %d bytes and stand right before the end",
			length, start, mostDirectory)
		return nil
	}
	archive, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		v.refuse(wholeBundle, "is not a zip archive: %s", err)
		return nil
	}
	return v.filesOf(archive)
}

// filesOf returns the files of a bundle by name, or nil if one is missing or does not belong there.
func (v *Verification) filesOf(archive *zip.Reader) map[string]*zip.File {
	before := len(v.Refusals)
	files := make(map[string]*zip.File)
	for _, f := range archive.File {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == f.Name })
		switch {
		case i < 0:
			v.refuse(wholeBundle, "has a file %s that does not belong there", wire.Quote(f.Name, 100))
		case files[f.Name] != nil:
			v.refuse(wholeBundle, "has the file %s twice", f.Name)
		case !f.Mode().IsRegular():
			v.refuse(f.Name, "is not a regular file")
		case f.UncompressedSize64 > uint64(members[i].most):
			v.refuse(f.Name, "has %d bytes, more than %d", f.UncompressedSize64, members[i].most)
		default:
			files[f.Name] = f
		}
	}
	for _, m := range members {
		if files[m.name] == nil && len(v.Refusals) == before {
			v.refuse(wholeBundle, "lacks the file %s", m.name)
		}
	}
	if len(v.Refusals) > before {
		return nil
	}
	return files
}

// take reads a file of the archive into w, and its digest, as far as the directory says
// that it goes.
func (v *Verification) take(f *zip.File, w io.Writer) bool {
	in, err := f.Open()
	if err != nil {
		v.refuse(f.Name, "cannot be read: %s", err)
		return false
	}
	defer in.Close()
	d := newDigest()
	if _, err := io.Copy(io.MultiWriter(d, w), io.LimitReader(in, int64(f.UncompressedSize64)+1)); err != nil {
		v.refuse(f.Name, "cannot be read: %s", err)
		return false
	}
	if d.size != int64(f.UncompressedSize64) {
		v.refuse(f.Name, "has more than the %d bytes that the archive says it has", f.UncompressedSize64)
		return false
	}
	v.Digests[f.Name] = d.file(f.Name).SHA256
	return true
}

func (v *Verification) read(files map[string]*zip.File, name string) []byte {
	var text bytes.Buffer
	if !v.take(files[name], &text) {
		return nil
	}
	return text.Bytes()
}

// strict decodes JSON that this program writes, byte by byte: what a reader would ignore,
// such as an unknown member, is refused.
func (v *Verification) strict(name string, text []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		v.refuse(name, "cannot be read: %s", err)
		return false
	}
	var again bytes.Buffer
	if err := reporters.WriteJSON(&again, into, name); err != nil {
		v.refuse(name, "cannot be read: %s", err)
		return false
	}
	return v.same(name, text, again.Bytes())
}

// same refuses a file that is spelled otherwise than this program spells it.
func (v *Verification) same(name string, got, want []byte) bool {
	if bytes.Equal(got, want) {
		return true
	}
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	v.refuse(name, "is not as mcpconform writes it: line %d differs", 1+bytes.Count(got[:n], []byte("\n")))
	return false
}

// readTrace reads the trace while it is unpacked, and refuses one that is spelled
// otherwise than a trace is written: a line may be missing, or out of place.
func (v *Verification) readTrace(files map[string]*zip.File) *wire.Trace {
	pipe, in := io.Pipe()
	type outcome struct {
		trace *wire.Trace
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		trace, err := wire.ReadTrace(pipe, wire.DefaultLimits)
		_ = pipe.CloseWithError(err) // the rest is not wanted
		done <- outcome{trace, err}
	}()
	// A reader that gives up ends the copy too; its own reason is the one to tell.
	before := len(v.Refusals)
	unpacked := v.take(files[TraceFile], in)
	_ = in.Close()
	o := <-done
	if o.err != nil {
		v.Refusals = v.Refusals[:before]
		v.refuse(TraceFile, "is not a trace: %s", o.err)
		return nil
	}
	if !unpacked {
		return nil
	}
	d := newDigest()
	if _, err := o.trace.WriteTo(d); err != nil || d.file("").SHA256 != v.Digests[TraceFile] {
		v.refuse(TraceFile, "is not as mcpconform writes it: a line is missing, out of place or was changed")
	}
	return o.trace
}

// digests compares the files with what the manifest says of them.
func (v *Verification) digests(files map[string]*zip.File) {
	if v.Manifest.Format != Format {
		return
	}
	var want []File
	for _, m := range members {
		if m.name != ManifestFile {
			want = append(want, File{m.name, int64(files[m.name].UncompressedSize64), v.Digests[m.name]})
		}
	}
	if len(v.Manifest.Files) != len(want) {
		v.refuse(ManifestFile, "lists %d files; a bundle has %d beside it", len(v.Manifest.Files), len(want))
		return
	}
	for i, f := range v.Manifest.Files {
		switch w := want[i]; {
		case f.Name != w.Name:
			v.refuse(ManifestFile, "lists %s where %s belongs", wire.Quote(f.Name, 100), w.Name)
		case f.Size != w.Size:
			v.refuse(f.Name, "has %d bytes; the manifest says %d", w.Size, f.Size)
		case f.SHA256 != w.SHA256 && w.SHA256 != "":
			v.refuse(f.Name, "has the SHA-256 %s; the manifest says %s", w.SHA256, wire.Quote(f.SHA256, 80))
		}
	}
}

func (v *Verification) readResults(text []byte) {
	run, err := reporters.ReadJSON(bytes.NewReader(text))
	if err != nil {
		v.refuse(ResultsFile, "%s", err)
		return
	}
	var again bytes.Buffer
	if err := reporters.JSON(&again, run); err != nil {
		v.refuse(ResultsFile, "%s", err)
		return
	}
	if v.same(ResultsFile, text, again.Bytes()) {
		v.Run = run
	}
}

// readConfiguration compares what the run was made with with the results, and how it is
// reproduced with both.
func (v *Verification) readConfiguration(text []byte) {
	var c Configuration
	if !v.strict(ConfigurationFile, text, &c) || v.Run == nil {
		return
	}
	run := v.Run
	for _, m := range []struct{ what, got, want string }{
		{"role", c.Role, run.Role},
		{"command", fmt.Sprintf("%q", c.Command), fmt.Sprintf("%q", run.Target.Command)},
		{"url", c.URL, run.Target.URL},
		{"seed", fmt.Sprint(c.Seed), fmt.Sprint(run.Seed)},
		{"thorough", fmt.Sprint(c.Thorough), fmt.Sprint(run.Thorough)},
	} {
		if m.got != m.want {
			v.refuse(ConfigurationFile, "has the %s %s; results.json has %s", m.what, wire.Quote(m.got, 200),
				wire.Quote(m.want, 200))
		}
	}
	v.rendered(ReproduceFile, "what follows from the manifest and the configuration", func(w io.Writer) error {
		return reporters.Reproduce(w, reproduction(v.Manifest, c))
	})
}

// rendered compares a file with what is rendered again.
func (v *Verification) rendered(name, what string, render func(io.Writer) error) {
	d := newDigest()
	if err := render(d); err != nil {
		v.refuse(name, "cannot be rendered again: %s", err)
		return
	}
	if d.file(name).SHA256 != v.Digests[name] {
		v.refuse(name, "is not %s", what)
	}
}

// origin compares who made the bundle, by which requirements, with this version.
func (v *Verification) origin() {
	m := v.Manifest
	if m.Tool != v.Run.Tool {
		v.refuse(ManifestFile, "was made by %s %s, and results.json by %s %s", m.Tool.Name, m.Tool.Version,
			v.Run.Tool.Name, v.Run.Tool.Version)
	}
	if m.Revision != v.Run.Revision {
		v.refuse(ManifestFile, "is about revision %s, and results.json about %s", wire.Quote(m.Revision, 40),
			wire.Quote(v.Run.Revision, 40))
	}
	own, err := v.Run.Protocol().CatalogueDigest()
	if err != nil {
		v.refuse(wholeBundle, "%s", err)
		return
	}
	v.OtherCatalogue = m.CatalogueSHA256 != own
}

// whole refuses the results of a partial run, and a class that differs from the frozen one.
func (v *Verification) whole() {
	run, m := v.Run, v.Manifest
	switch {
	case run.Partial:
		v.refuse(ResultsFile, "is about a selection (partial); a certificate needs a whole run")
	case run.Shard != nil:
		v.refuse(ResultsFile, "is a shard, a part of a run; a certificate needs a whole run")
	}
	if run.Quick {
		v.refuse(ResultsFile, "comes from a quick run; a certificate needs a run without --quick")
	}
	if run.Strict {
		v.refuse(ResultsFile, "comes from a strict run; the class says whether recommendations count")
	}
	if n := len(run.ExpectedFailures); n > 0 {
		v.refuse(ResultsFile, "waives failures: expectedFailures has %d entries", n)
	}
	for i := range run.Requirements {
		q := &run.Requirements[i]
		if q.Expected != "" {
			v.refuse(ResultsFile+", "+q.ID, "the failure is waived: %s", wire.Quote(q.Expected, 100))
		}
	}
	class, known := v.Run.Protocol().FindClass(m.Class.ID, m.Class.Version)
	switch {
	case !known && v.OtherCatalogue:
		return
	case !known:
		v.refuse(ManifestFile, "names the class %s, version %d, which does not exist", wire.Quote(m.Class.ID, 80),
			m.Class.Version)
		return
	case class.SHA256 != m.Class.SHA256 || class.Digest() != m.Class.SHA256:
		v.refuse(ManifestFile, "says that the class %s, version %d, has the SHA-256 %s; it has %s", class.ID,
			class.Version, wire.Quote(m.Class.SHA256, 80), class.SHA256)
		return
	}
	if want := schema.ClassID(run.Role, run.Transport, class.Extent()); class.ID != want {
		v.refuse(ManifestFile, "names the class %s; a %s over %s belongs to %s", class.ID, run.Role, run.Transport,
			want)
		return
	}
	for _, id := range class.IDs() {
		if !slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == id }) {
			v.refuse(ResultsFile+", "+id, "the class demands the requirement, which the results lack")
		}
	}
	verdict, counts := Judge(class, run)
	if verdict != m.Verdict {
		v.refuse(ManifestFile, "says %s; %s follows from results.json", wire.Quote(string(m.Verdict), 40), verdict)
	}
	if counts != m.Counts {
		v.refuse(ManifestFile, "has other counts than results.json")
	}
}

// run refuses times that cannot be.
func (v *Verification) run(now time.Time) {
	const skew = 24 * time.Hour // between the clocks of two machines, and time zones
	started := v.Run.Started
	published, err := time.Parse(time.DateOnly, v.Run.Revision)
	if err == nil && started.Before(published) {
		v.refuse(ResultsFile, "started at %s, before the revision was published", started.Format(time.RFC3339))
	}
	ended := started.Add(time.Duration(min(v.Run.Seconds, 1e9) * float64(time.Second)))
	if ended.After(now.Add(skew)) {
		v.refuse(ResultsFile, "ended at %s, which is in the future", ended.Format(time.RFC3339))
	}
	if name := v.Run.Tool.Name; name != "mcpconform" {
		v.refuse(ResultsFile, "was made by %s, not by mcpconform", wire.Quote(name, 80))
	}
	if strings.TrimSpace(v.Run.Tool.Version) == "" {
		v.refuse(ResultsFile, "does not say which version made it")
	}
}
