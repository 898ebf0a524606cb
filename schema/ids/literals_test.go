package ids_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// members are the members of composite literals that hold ids of requirements.
var members = []string{"Requirement", "Requirements", "Collateral", "Shows"}

// takers are the functions that take the id of a requirement.
var takers = []string{"Check", "Pass", "Violation", "Warning", "Warn", "WarnUnless", "Fail", "Exercised", "About",
	"Deliberately", "HasFindings", "Lookup"}

var like = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+$`)

// TestNoLiterals wants the id of a requirement in Go to be a constant of the package, so that a misspelt one does not
// compile.
func TestNoLiterals(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, dir := range []string{"cmd", "internal", "mockserver", "reference", "reporters", "suites"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				refuse(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// refuse reports the literals in a file that stand where ids do.
func refuse(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	literals := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, _ := strconv.Unquote(literal.Value); like.MatchString(text) {
					t.Errorf("%s: %q: write the constant of package ids", files.Position(literal.Pos()), text)
				}
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(members, key.Name) {
				literals(n.Value)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(takers, f.Sel.Name) {
				for _, argument := range n.Args[:min(2, len(n.Args))] {
					if literal, ok := argument.(*ast.BasicLit); ok {
						literals(literal)
					}
				}
			}
		}
		return true
	})
}
