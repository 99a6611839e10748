package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// stateFree rooms are programs, tests and tools: only there may a package have variables of any kind.
var stateFree = []string{"cmd", "examples", "test", "bench", "internal/oracle"}

// pureCalls make values that nothing can change afterwards, or that only reading code uses.
var pureCalls = map[string]bool{
	"errors.New": true, "fmt.Errorf": true, // sentinels
	"regexp.MustCompile": true, "reflect.TypeFor": true, "reflect.TypeOf": true,
	"hash/crc32.MakeTable": true, "strings.NewReplacer": true, "math.Inf": true, "time.Unix": true, "time.Date": true,
}

// allowedVars are variables that the rule below would refuse, each with the reason why it may stand.
var allowedVars = map[string]string{}

// packageState refuses mutable package-level variables outside programs and tests. A variable is taken for immutable if
// it is _, or its initial value is a literal, a call listed in pureCalls, or an expression of these, and nothing in its
// package assigns to it or to an element of it, takes its address, clears, copies into or deletes from it, or calls a
// method on it if it is a struct (which might change it; errors excepted).
func packageState(t *Tree) []Finding {
	byRoom := map[string][]*File{}
	for _, f := range t.Files {
		if !f.Test && !under(f.Room, stateFree...) {
			byRoom[f.Room] = append(byRoom[f.Room], f)
		}
	}
	var out []Finding
	for _, f := range t.Files {
		files := byRoom[f.Room]
		if f.Test || files == nil {
			continue
		}
		for _, d := range f.Syntax.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				s := spec.(*ast.ValueSpec)
				embedded := hasDirective(gen.Doc, "//go:embed") || hasDirective(s.Doc, "//go:embed")
				for i, name := range s.Names {
					if name.Name == "_" || embedded || allowedVars[f.Room+"."+name.Name] != "" {
						continue
					}
					if i >= len(s.Values) || !pure(f, s.Values[i]) {
						out = append(out, f.at(name.Pos(), "state", "package variable %s is not a constant table or a sentinel error: nothing may be global (allowed forms in internal/lint/vars.go)", name.Name))
					} else if at := written(files, name.Name, isStruct(s.Values[i]) && !isError(name.Name)); at != nil {
						out = append(out, *at)
					}
				}
			}
		}
	}
	return out
}

// pure reports whether an initial value is built of literals and pure calls alone.
func pure(f *File, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.Ident, *ast.FuncLit, *ast.SelectorExpr:
		return true
	case *ast.ParenExpr:
		return pure(f, e.X)
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.CompositeLit)
		return (e.Op != token.AND || literal) && e.Op != token.ARROW && pure(f, e.X)
	case *ast.BinaryExpr:
		return pure(f, e.X) && pure(f, e.Y)
	case *ast.KeyValueExpr:
		return pure(f, e.Key) && pure(f, e.Value)
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			if !pure(f, x) {
				return false
			}
		}
		pkg, _ := f.selects(e.Type)
		return pkg != "sync" && pkg != "sync/atomic"
	case *ast.CallExpr:
		return pureCall(f, e)
	}
	return false
}

func pureCall(f *File, e *ast.CallExpr) bool {
	fun := e.Fun
	if x, ok := fun.(*ast.IndexExpr); ok {
		fun = x.X
	}
	if pkg, name := f.selects(fun); pkg != "" {
		return pureCalls[pkg+"."+name]
	}
	if sel, ok := fun.(*ast.SelectorExpr); ok { // a method of what a pure call made, as reflect.TypeFor[T]().Name()
		call, ok := sel.X.(*ast.CallExpr)
		return ok && pureCall(f, call)
	}
	if id, ok := fun.(*ast.Ident); ok && (id.Name == "append" || id.Name == "len" || basicTypes[id.Name]) {
		for _, a := range e.Args {
			if !pure(f, a) {
				return false
			}
		}
		return true
	}
	return false
}

// basicTypes are the conversions that may stand in an initial value.
var basicTypes = map[string]bool{
	"int": true, "int8": true, "int16": true, "int32": true, "int64": true, "uint": true, "uint8": true, "uint16": true,
	"uint32": true, "uint64": true, "float32": true, "float64": true, "string": true, "byte": true, "rune": true,
}

// written finds the first place in a package that changes a package variable. A local variable of the same name is
// taken for it: rename one of them.
func written(files []*File, name string, calls bool) *Finding {
	var found *Finding
	for _, f := range files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if found != nil {
				return false
			}
			changed := targets(n)
			if call, ok := n.(*ast.CallExpr); ok && calls {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					changed = append(changed, sel.X)
				}
			}
			for _, target := range changed {
				if root(target) == name {
					at := f.at(n.Pos(), "state", "package variable %s is changed here: nothing may be global", name)
					found = &at
				}
			}
			return true
		})
	}
	return found
}

// isStruct reports whether an initial value is a struct literal or its address, of any type but array, slice and map.
func isStruct(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	switch lit.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
		return false
	}
	return true
}

func isError(name string) bool {
	return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}

// targets gives what a node changes.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// root gives the variable under an index, field or pointer expression.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return ""
		}
	}
}

// hasDirective reports whether a comment group has a line that begins with a directive.
func hasDirective(g *ast.CommentGroup, directive string) bool {
	if g == nil {
		return false
	}
	for _, c := range g.List {
		if strings.HasPrefix(c.Text, directive) {
			return true
		}
	}
	return false
}
