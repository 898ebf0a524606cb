package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Class is a conformance class: the requirements that a target in one role, over one
// transport, is certified against. A version of a class is frozen: it never changes, so
// that certificates of different days mean the same.
type Class struct {
	// ID is role/transport/extent, such as server/stdio/core.
	ID       string `json:"id"`
	Version  int    `json:"version"` // from 1
	Revision string `json:"revision"`
	// SHA256 is the digest of all else: see Digest.
	SHA256 string `json:"sha256"`
	// Requirements holds the ids, sorted, by the capability on whose declaration they
	// depend; those under "" depend on none.
	Requirements map[string][]string `json:"requirements"`
}

// The extents of a class.
const (
	CoreClass     = "core"     // what must be met: each MUST and MUST NOT that a peer can see
	ExtendedClass = "extended" // that, and what is recommended or permitted
)

// ClassID names the class of a role, transport and extent.
func ClassID(role, transport, extent string) string { return role + "/" + transport + "/" + extent }

// Extent returns the last part of the id.
func (c Class) Extent() string { return c.ID[strings.LastIndexByte(c.ID, '/')+1:] }

// Digest returns the SHA-256 of the class without the member sha256, as compact JSON with
// the members in the order of this type and the capabilities sorted, in hexadecimal.
func (c Class) Digest() string {
	text, err := json.Marshal(struct {
		ID           string              `json:"id"`
		Version      int                 `json:"version"`
		Revision     string              `json:"revision"`
		Requirements map[string][]string `json:"requirements"`
	}{c.ID, c.Version, c.Revision, c.Requirements})
	if err != nil {
		return "" // cannot be: there are only strings and a number
	}
	return hexDigest(text)
}

func hexDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// IDs returns the ids of all requirements of the class, sorted.
func (c Class) IDs() []string {
	var ids []string
	for _, list := range c.Requirements {
		ids = append(ids, list...)
	}
	slices.Sort(ids)
	return ids
}

// Classes returns all versions of all classes, those of one class from the oldest to
// the newest. The caller may change the slice, but not what the entries refer to.
func (r *Revision) Classes() []Class { return slices.Clone(r.classes()) }

// FindClass returns a version of a class; with version 0 the newest.
func (r *Revision) FindClass(id string, version int) (Class, bool) {
	for _, c := range slices.Backward(r.classes()) {
		if c.ID == id && (version == 0 || version == c.Version) {
			return c, true
		}
	}
	return Class{}, false
}

// DeriveClasses makes the classes of a revision that follow from its catalogue, without version and digest.
// Requirements that no peer can see are in none.
func DeriveClasses(revision string, catalogue []Requirement) []Class {
	var all []Class
	for _, role := range []Party{Server, Client} {
		for _, transport := range []string{"stdio", "http", "sse", "custom"} {
			for _, extent := range []string{CoreClass, ExtendedClass} {
				c := Class{ID: ClassID(string(role), transport, extent), Revision: revision,
					Requirements: make(map[string][]string)}
				for _, q := range catalogue {
					judged := q.JudgedParty()
					must := q.Level == Must || q.Level == MustNot
					switch {
					case !q.Observable, judged != Both && judged != role, extent == CoreClass && !must,
						len(q.Transports) > 0 && !slices.Contains(q.Transports, transport):
						continue
					}
					c.Requirements[q.Capability] = append(c.Requirements[q.Capability], q.ID)
				}
				for _, ids := range c.Requirements {
					slices.Sort(ids)
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// CatalogueDigest returns the SHA-256 of what the catalogue demands, as compact JSON, in
// hexadecimal: two versions of mcpconform with the same digest mean the same by every id.
// How a requirement is tried, and what helps, is no part of it.
func (r *Revision) CatalogueDigest() (string, error) {
	catalogue := r.Catalogue()
	for i := range catalogue {
		q := &catalogue[i]
		q.Sources, q.How, q.Violation, q.Config = nil, "", "", nil
	}
	text, err := json.Marshal(catalogue)
	if err != nil {
		return "", fmt.Errorf("digest of the catalogue: %w", err)
	}
	return hexDigest(text), nil
}
