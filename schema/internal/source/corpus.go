package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Cases are the examples of one definition, from a file of fixtures/messages.
type Cases struct {
	Definition string    `json:"definition"`
	Valid      []any     `json:"valid"`
	Invalid    []Invalid `json:"invalid"`
	// Wider are valid values that the published schema refuses although the
	// type definitions allow them: one of the deliberate differences.
	Wider []any `json:"wider"`
}

// An Invalid value breaks its definition in one way.
type Invalid struct {
	Why     string `json:"why"`
	Pointer string `json:"pointer"` // of the violation that it causes
	Keyword string `json:"keyword"` // of the violation that it causes
	Value   any    `json:"value"`
}

// Corpus reads all files of a folder of examples. Numbers are json.Number.
func Corpus(dir string) ([]Cases, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no examples", dir)
	}
	var corpus []Cases
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		d.DisallowUnknownFields()
		var cases Cases
		if err := d.Decode(&cases); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		corpus = append(corpus, cases)
	}
	return corpus, nil
}
