package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the root module, the prefix of every room's import path.
const Module = "github.com/statemill/statemill"

// A Finding is one place that breaks one rule.
type Finding struct {
	File string // path from the repository's root
	Line int    // from 1; 0 when it is about the whole file or folder
	Rule string // the rule's name
	Text string // what is wrong and what to do
}

// String gives the finding in the form that editors can jump to.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text)
}

// A File is one parsed Go file.
type File struct {
	Path    string // from the repository's root, with slashes
	Room    string // its folder; "." for the root
	Test    bool   // ends in _test.go
	Lines   int
	Syntax  *ast.File
	imports map[string]string // local name to import path
	fset    *token.FileSet
}

// A Tree is a set of Go files, parsed with their comments.
type Tree struct {
	Files []*File           // in order of path
	Texts map[string]string // other checked text files (Markdown), by path
}

// Load parses every Go file under root, nested modules too, except hidden folders and testdata.
func Load(root string) (*Tree, error) {
	sources := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		sources[filepath.ToSlash(rel)] = string(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lint: read the tree under %s: %w", root, err)
	}
	return Parse(sources)
}

// Parse makes a tree of sources by path: Go files are parsed, all others kept as text.
func Parse(sources map[string]string) (*Tree, error) {
	t := &Tree{Texts: map[string]string{}}
	for name, src := range sources {
		if path.Ext(name) != ".go" {
			t.Texts[name] = src
			continue
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("lint: parse: %w", err)
		}
		if ast.IsGenerated(syntax) {
			continue
		}
		f := &File{
			Path: name, Room: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"),
			Lines: strings.Count(src, "\n"), Syntax: syntax, fset: fset, imports: map[string]string{},
		}
		for _, spec := range syntax.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("lint: %s: import %s: %w", name, spec.Path.Value, err)
			}
			local := defaultName(p)
			if spec.Name != nil {
				local = spec.Name.Name
			}
			f.imports[local] = p
		}
		t.Files = append(t.Files, f)
	}
	slices.SortFunc(t.Files, func(a, b *File) int { return cmp.Compare(a.Path, b.Path) })
	return t, nil
}

// defaultName guesses the package name of an import path: its last element, or the one before a version suffix.
func defaultName(p string) string {
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(p))
	}
	return base
}

// at makes a finding at a node.
func (f *File) at(pos token.Pos, rule, format string, args ...any) Finding {
	return Finding{File: f.Path, Line: f.fset.Position(pos).Line, Rule: rule, Text: fmt.Sprintf(format, args...)}
}

// selects reports the import path and the selected name of an expression such as time.Now.
func (f *File) selects(e ast.Node) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return f.imports[id.Name], sel.Sel.Name
}

// under reports whether a room is dir or lies in it.
func under(room string, dirs ...string) bool {
	for _, d := range dirs {
		if room == d || strings.HasPrefix(room, d+"/") {
			return true
		}
	}
	return false
}
