package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// riddles are patterns that keep a message from being plain English: the subject
// comes first, then the verb, and "not" stands with it.
var riddles = regexp.MustCompile(`\b(?:is|are|was|be|names|gives|takes|starts) no [a-zA-Z%]|than nothing|\bheld against\b|^[Oo]f (?:a|the|what|two) |\bin vain\b|\bdue\b`)

// TestPlainEnglish reads the texts of the command and of its packages.
func TestPlainEnglish(t *testing.T) {
	for _, text := range []string{"x is no URI", "it names no file", "longer than nothing", "Of a server"} {
		if !riddles.MatchString(text) {
			t.Errorf("%q is not found", text)
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && riddles.MatchString(text) {
					t.Errorf("%s: %q", files.Position(lit.Pos()), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
