package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path"
	"strings"
)

// wheel returns the Python package that puts the program for a platform beside the other
// scripts of an environment.
func (s *source) wheel(p platform, program []byte, licenses []file) (file, error) {
	base := "mcpconform-" + s.version.python()
	info := base + ".dist-info"

	var metadata, wheel, record bytes.Buffer
	fmt.Fprintf(&metadata, "Metadata-Version: 2.4\nName: mcpconform\nVersion: %s\nSummary: %s\n", s.version.python(),
		summary)
	fmt.Fprintf(&metadata,
		"Keywords: mcp,model-context-protocol,conformance,testing\nProject-URL: Source, %s\nLicense-Expression: "+
			"Apache-2.0\n",
		homepage)
	for _, l := range licenses {
		fmt.Fprintf(&metadata, "License-File: %s\n", l.name)
	}
	fmt.Fprintf(&metadata, "Description-Content-Type: text/markdown\n\n%s", packageReadme)

	fmt.Fprint(&wheel, "Wheel-Version: 1.0\nGenerator: mcpconform release\nRoot-Is-Purelib: false\n")
	for _, tag := range p.wheelTags {
		fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
	}

	files := []file{
		{path.Join(base+".data", "scripts", p.program()), 0o755, program},
		{path.Join(info, "METADATA"), 0o644, metadata.Bytes()},
		{path.Join(info, "WHEEL"), 0o644, wheel.Bytes()},
	}
	for _, l := range licenses {
		files = append(files, file{path.Join(info, "licenses", l.name), l.mode, l.data})
	}
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	list := path.Join(info, "RECORD")
	fmt.Fprintf(&record, "%s,,\n", list)
	files = append(files, file{list, 0o644, record.Bytes()})

	data, err := zipped(s.date, files)
	return file{base + "-py3-none-" + strings.Join(p.wheelTags, ".") + ".whl", 0o644, data}, err
}
