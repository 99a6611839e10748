package lint

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// packageDocs demands one doc comment a package, in the usual words.
func packageDocs(t *Tree) []Finding {
	type pkg struct {
		first *File
		docs  int
	}
	seen := map[string]*pkg{}
	var order []string
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		p := seen[f.Room]
		if p == nil {
			p = &pkg{first: f}
			seen[f.Room] = p
			order = append(order, f.Room)
		}
		if f.Syntax.Doc != nil {
			p.docs++
			text := f.Syntax.Doc.Text()
			good := strings.HasPrefix(text, "Package "+f.Syntax.Name.Name)
			if f.Syntax.Name.Name == "main" {
				first, _, _ := strings.Cut(text, " ")
				good = first == "Command" || strings.EqualFold(first, path.Base(f.Room))
			}
			if !good {
				p.first, p.docs = f, -1<<10
			}
		}
	}
	var out []Finding
	for _, room := range order {
		switch p := seen[room]; {
		case p.docs < 0:
			out = append(out, p.first.at(p.first.Syntax.Package, "package-doc", "doc comment must begin with \"Package %s\" (of a program with Command or its name)", p.first.Syntax.Name.Name))
		case p.docs == 0:
			out = append(out, p.first.at(p.first.Syntax.Package, "package-doc", "package has no doc comment: say its purpose, main types, invariants, and what it does not do"))
		case p.docs > 1:
			out = append(out, p.first.at(p.first.Syntax.Package, "package-doc", "%d files of the package have a doc comment: keep one", p.docs))
		}
	}
	return out
}

// wellKnown methods mean the same on every type.
var wellKnown = map[string]bool{"Error": true, "String": true, "Unwrap": true, "Is": true, "GoString": true, "MarshalJSON": true}

// exportedDocs demands a comment on every exported name: functions, methods of exported types (but wellKnown ones),
// types, interface methods, fields of option types (there a reader needs default, range and interplay of each), constants
// and variables. A comment of a group counts for its members.
func exportedDocs(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if f.Test || f.Syntax.Name.Name == "main" || under(f.Room, "internal/oracle", "test", "bench") {
			continue
		}
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if exportedDecl(d) && !says(d.Doc) && (d.Recv == nil || !wellKnown[d.Name.Name]) {
					out = append(out, f.at(d.Pos(), "doc", "exported %s has no doc comment", d.Name.Name))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					out = append(out, specDocs(f, d, spec)...)
				}
			}
		}
	}
	return out
}

func specDocs(f *File, d *ast.GenDecl, spec ast.Spec) []Finding {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		exported := slices.IndexFunc(s.Names, (*ast.Ident).IsExported)
		if exported >= 0 && !says(s.Doc, s.Comment, d.Doc) {
			return []Finding{f.at(s.Pos(), "doc", "exported %s has no doc comment", s.Names[exported].Name)}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		if !says(s.Doc, s.Comment, d.Doc) {
			return []Finding{f.at(s.Pos(), "doc", "exported %s has no doc comment", s.Name.Name)}
		}
		about := s.Doc.Text() + d.Doc.Text() + s.Comment.Text()
		switch typ := s.Type.(type) {
		case *ast.StructType:
			if isOptions(s.Name.Name) {
				return memberDocs(f, s.Name.Name, about, typ.Fields, "field")
			}
		case *ast.InterfaceType:
			return memberDocs(f, s.Name.Name, about, typ.Methods, "method")
		}
	}
	return nil
}

// isOptions tells types whose fields a user sets.
func isOptions(name string) bool {
	for _, suffix := range []string{"Options", "Config", "Limits", "Policy"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// memberDocs checks fields and interface methods: each has a comment, or a comment of the type or of another member names
// it. The comment of an interface with one method is about that method.
func memberDocs(f *File, typ, about string, members *ast.FieldList, kind string) []Finding {
	var out []Finding
	if kind == "method" && members.NumFields() == 1 {
		return nil
	}
	for _, m := range members.List {
		about += m.Doc.Text()
	}
	for _, m := range members.List {
		for _, name := range m.Names {
			if name.IsExported() && !says(m.Doc, m.Comment) && !strings.Contains(about, name.Name) {
				out = append(out, f.at(name.Pos(), "doc", "exported %s %s.%s has no comment and no comment of the type names it", kind, typ, name.Name))
			}
		}
	}
	return out
}

// says reports whether one of the comments has words (a directive alone has none).
func says(groups ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(groups, func(g *ast.CommentGroup) bool { return strings.TrimSpace(g.Text()) != "" })
}
