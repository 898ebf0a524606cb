// Package family holds families of stimuli: values that a peer has to treat alike, the
// plain one first and behind it those at which implementations break. The members are
// data, in fixtures/families, each with the reason why it is there.
package family

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/mcpconform/mcpconform/fixtures"
	"github.com/mcpconform/mcpconform/internal/yamlfile"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Family is a set of values.
type Family struct {
	Name  string `yaml:"-"` // of its file
	About string `yaml:"about"`
	// Sample is how many of the sampled members a run draws beside the others.
	Sample int `yaml:"sample"`
	// Control says that the plain member is what others are compared with, and shows nothing by itself.
	Control bool     `yaml:"control"`
	Members []Member `yaml:"members"`
}

// Member is one value of a family. It has one of Text, JSON and Bytes.
type Member struct {
	// Is says in a few words what is special about the value: "empty", "beyond 32 bits".
	Is  string `yaml:"is"`
	Why string `yaml:"why"`
	// Seen is a thread in which an implementation went wrong with it, if known.
	Seen string `yaml:"seen"`
	// Text is a string, JSON the text of a JSON value, and Bytes a string with the escapes
	// of Go, for what is not UTF-8.
	Text  *string `yaml:"text"`
	JSON  string  `yaml:"json"`
	Bytes string  `yaml:"bytes"`
	// Times repeats the text.
	Times int `yaml:"times"`
	// Sampled members are drawn in part: they are like others that are always drawn.
	Sampled bool `yaml:"sampled"`
	// Everywhere marks what breaks the code behind a place, and is drawn at each place. The others break what reads and
	// writes all messages: they are drawn at the first place only.
	Everywhere bool `yaml:"everywhere"`
	// Thorough members are drawn only by a thorough run.
	Thorough bool `yaml:"thorough"`

	text    string
	value   any
	control bool
}

// Of makes a member of a value without a family, so that a finding shows it like one.
func Of(value any) Member {
	if text, ok := value.(string); ok {
		return Member{text: text, value: text}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	m := Member{JSON: string(raw)}
	if err := m.settle(); err != nil {
		panic(err)
	}
	return m
}

// Control reports whether the member shows nothing by itself: others are compared with it.
func (m Member) Control() bool { return m.control }

// Value returns the value as decoded JSON; that of a text is a string.
func (m Member) Value() any { return m.value }

// Raw returns the JSON text of the value, or the text itself if it is not JSON.
func (m Member) Raw() string { return m.text }

// ID returns the value as the id of a request.
func (m Member) ID() wire.ID { return wire.ReadID(m.value) }

// Str returns the value if it is a string.
func (m Member) Str() string {
	s, _ := m.value.(string)
	return s
}

// With replaces, in a text, each placeholder {name} by its value.
func (m Member) With(placeholders map[string]string) Member {
	pairs := make([]string, 0, 2*len(placeholders))
	for name, value := range placeholders {
		pairs = append(pairs, "{"+name+"}", value)
	}
	m.text = strings.NewReplacer(pairs...).Replace(m.text)
	if _, ok := m.value.(string); ok {
		m.value = m.text
	}
	return m
}

// Escaped writes a text for a JSON string with an escape for each unit of UTF-16 (RFC 8259, section 7). A slash
// has one of its own.
func Escaped(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		if unit == '/' {
			b.WriteString(`\/`)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}

// String shows the value in a finding, and what is special about it.
func (m Member) String() string {
	shown := m.text
	if _, ok := m.value.(string); ok {
		shown = wire.Quote(m.text, longest)
	}
	if m.Is == plain || m.Is == "" {
		return shown
	}
	return shown + " (" + m.Is + ")"
}

// longest is how many characters of a value a finding shows.
const longest = 60

// plain is what the first member of each family is.
const plain = "plain"

// Plain reports whether the member is the plain one.
func (m Member) Plain() bool { return m.Is == plain }

var builtIn = sync.OnceValues(func() (map[string]*Family, error) { return read(fixtures.Families()) })

// All returns the families by name. The caller must not change them.
func All() (map[string]*Family, error) { return builtIn() }

func read(fsys fs.FS) (map[string]*Family, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("read families: %w", err)
	}
	all := make(map[string]*Family)
	for _, name := range names {
		f, err := yamlfile.ReadFS(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read family: %w", err)
		}
		family := &Family{Name: strings.TrimSuffix(name, ".yaml")}
		if err := f.Decode(family); err != nil {
			return nil, fmt.Errorf("read family: %w", err)
		}
		for i := range family.Members {
			if err := family.Members[i].settle(); err != nil {
				return nil, fmt.Errorf("read family: %w", f.Errorf([]any{"members", i}, "%s", err))
			}
		}
		if len(family.Members) == 0 || !family.Members[0].Plain() || family.Members[0].Thorough ||
			family.Members[0].Sampled {
			return nil, fmt.Errorf("read family: %w",
				f.Errorf(nil, "the first member is not %q, or not always drawn", plain))
		}
		if n := family.sampled(); family.Sample > n || family.Sample == 0 && n > 0 {
			return nil, fmt.Errorf("read family: %w",
				f.Errorf(nil, "a sample of %d from %d sampled members", family.Sample, n))
		}
		family.Members[0].control = family.Control
		all[family.Name] = family
	}
	return all, nil
}

// settle makes the value of a member that was read.
func (m *Member) settle() error {
	switch {
	case m.Text != nil:
		m.text = *m.Text
	case m.Bytes != "":
		text, err := strconv.Unquote(`"` + m.Bytes + `"`)
		if err != nil {
			return fmt.Errorf("bytes: %w", err)
		}
		m.text = text
	case m.JSON != "":
		value, _, err := wire.Decode([]byte(m.JSON))
		if err != nil {
			return fmt.Errorf("json: %w", err)
		}
		m.text, m.value = m.JSON, value
		return nil
	default:
		return fmt.Errorf("a member has one of text, json and bytes")
	}
	if m.Times > 0 {
		m.text = strings.Repeat(m.text, m.Times)
	}
	m.value = m.text
	return nil
}

// Choice says which members of families a run draws. The same choice draws the same.
type Choice struct {
	// Seed chooses the members of large families.
	Seed uint64
	// Budget is that of the run: a quick one draws the plain member and the next one, a thorough one draws all.
	Budget result.Budget
	// Plain names a family of which the plain member alone is drawn, to compare with.
	Plain string
	// Only restricts families: of those that it names, the plain member and the given ones
	// are drawn, by what is special about them, as far as they would be drawn without it.
	Only map[string][]string
}

// Source returns a source of random numbers for a purpose. The same choice gives the same numbers.
func (c Choice) Source(purpose string) rand.Source {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // never fails
	return rand.NewPCG(c.Seed, h.Sum64())
}

// Draw returns members of a family for a purpose, such as a check, in the order of the
// family. It panics if there is no such family.
func (c Choice) Draw(name, purpose string) []Member {
	all, err := All()
	if err != nil {
		panic(err)
	}
	f := all[name]
	if f == nil {
		panic(fmt.Sprintf("there is no family %q", name))
	}
	drawn := f.draw(c, purpose)
	if only, ok := c.Only[name]; ok {
		drawn = slices.DeleteFunc(drawn, func(m Member) bool { return !m.Plain() && !slices.Contains(only, m.Is) })
	}
	return drawn
}

func (f *Family) draw(c Choice, purpose string) []Member {
	switch {
	case c.Plain == f.Name:
		return slices.Clone(f.Members[:1])
	case c.Budget == result.Quick:
		return slices.Clone(f.Members[:min(len(f.Members), 2)])
	case c.Budget == result.Thorough:
		return slices.Clone(f.Members)
	}
	r := rand.New(c.Source(f.Name + "\x00" + purpose))
	left, due := f.sampled(), f.Sample
	var drawn []Member
	for _, m := range f.Members {
		switch {
		case m.Thorough:
			continue
		case m.Sampled:
			left--
			if r.IntN(left+1) >= due {
				continue
			}
			due--
		}
		drawn = append(drawn, m)
	}
	return drawn
}

// Drawn returns how many members a run draws at each place.
func (f *Family) Drawn() int { return len(f.draw(Choice{}, "")) }

// sampled counts the members of which a run draws a part.
func (f *Family) sampled() (n int) {
	for _, m := range f.Members {
		if m.Sampled && !m.Thorough {
			n++
		}
	}
	return n
}
