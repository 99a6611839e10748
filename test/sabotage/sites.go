package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// findSites finds every sabotage.On("name") in the source: the places by name.
func findSites(root string) (map[string][]string, error) {
	sites := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("find the breaks: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := siteName(n); ok {
				at := fset.Position(n.Pos())
				rel, _ := filepath.Rel(root, at.Filename)
				sites[name] = append(sites[name], fmt.Sprintf("%s:%d", filepath.ToSlash(rel), at.Line))
			}
			return true
		})
		return nil
	})
	return sites, err
}

// siteName gives the name in a call sabotage.On("name"). Anything else than a literal is told as "?".
func siteName(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "On" {
		return "", false
	}
	if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "sabotage" {
		return "", false
	}
	if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if name, err := strconv.Unquote(lit.Value); err == nil {
			return name, true
		}
	}
	return "?", true
}

// compare tells where table and source differ.
func compare(sites map[string][]string, breaks []Break) []string {
	var faults []string
	known := map[string]bool{}
	for _, b := range breaks {
		if known[b.Name] {
			faults = append(faults, fmt.Sprintf("break %q stands twice in the table", b.Name))
		}
		known[b.Name] = true
		if len(sites[b.Name]) == 0 {
			faults = append(faults, fmt.Sprintf("break %q is in the table, but no source line asks for it", b.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		if !known[name] {
			faults = append(faults, fmt.Sprintf("break %q (%s) has no line in the table: which test must catch it?", name, strings.Join(sites[name], ", ")))
		}
	}
	return faults
}
