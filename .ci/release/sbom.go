package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The part of CycloneDX 1.6 that describes one program: https://cyclonedx.org/docs/1.6/json/
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     bomMetadata  `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	bomMetadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"`
		Name       string          `json:"name"`
		Version    string          `json:"version"`
		Hashes     []componentHash `json:"hashes,omitempty"`
		Licenses   []bomLicense    `json:"licenses"`
		PURL       string          `json:"purl"`
		Properties []bomProperty   `json:"properties,omitempty"`
	}
	componentHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	bomLicense struct {
		Expression string `json:"expression"`
	}
	bomProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// billOfMaterials says what the program for a platform consists of.
func (s *source) billOfMaterials(p platform, program []byte, modules []module) (file, error) {
	sum := sha256.Sum256(program)
	purl := fmt.Sprintf("pkg:golang/%s@%s?goarch=%s&goos=%s&type=module#%s", modulePath, s.version.tag(), p.arch, p.os,
		strings.TrimPrefix(command, "./"))
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: "urn:uuid:" + uuid(sum),
		Metadata: bomMetadata{
			Timestamp: s.date.Format(time.RFC3339),
			Component: component{
				Type: "application", Ref: purl, PURL: purl, Name: "mcpconform", Version: s.version.tag(),
				Hashes:     []componentHash{{"SHA-256", hex.EncodeToString(sum[:])}},
				Licenses:   []bomLicense{{"Apache-2.0"}},
				Properties: []bomProperty{{"mcpconform:commit", s.commit}},
			},
		},
	}
	root := dependency{Ref: purl}
	for _, m := range modules {
		c := component{Type: "library", Name: m.path, Version: m.version, Licenses: []bomLicense{{m.license}}}
		c.PURL = "pkg:golang/" + m.path + "@" + m.version + "?type=module"
		c.Ref = c.PURL
		// The checksum of go.sum is one of the list of the module's files and their checksums.
		if text, ok := strings.CutPrefix(m.sum, "h1:"); ok {
			digest, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return file{}, fmt.Errorf("the checksum of %s: %w", m.path, err)
			}
			c.Hashes = []componentHash{{"SHA-256", hex.EncodeToString(digest)}}
		}
		b.Components = append(b.Components, c)
		root.DependsOn = append(root.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{root}

	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return file{}, err
	}
	return file{"mcpconform_" + s.version.npm() + "_" + p.os + "_" + p.arch + ".cdx.json", 0o644, text.Bytes()}, nil
}

// uuid makes the version 8 of RFC 9562 of a checksum, so that the same program has the
// same.
func uuid(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
