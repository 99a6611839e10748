package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// A Rule is one check over the whole tree.
type Rule struct {
	Name  string
	Check func(*Tree) []Finding
}

// Rules gives every rule, in the order in which findings are told.
func Rules() []Rule {
	return []Rule{
		{"imports", imports},
		{"clock", realTime},
		{"sleep", sleeps},
		{"os", operatingSystem},
		{"print", printing},
		{"package-doc", packageDocs},
		{"doc", exportedDocs},
		{"size", sizes},
		{"unfinished", unfinished},
		{"state", packageState},
		{"go-in-new", goroutinesInNew},
	}
}

// Check runs all rules.
func Check(t *Tree) []Finding {
	var out []Finding
	for _, r := range Rules() {
		out = append(out, r.Check(t)...)
	}
	return out
}

// maxLines is the most lines that a file that is not a test may have.
const maxLines = 500

// clockCalls are the functions of package time that read or wait for the machine's clock.
var clockCalls = map[string]bool{
	"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true,
	"NewTimer": true, "NewTicker": true, "Tick": true,
}

// realTime keeps the machine's clock behind internal/clock. Programs at the top may read it; a test may only inside a
// synctest bubble, where it is a fake one, and in files of benchmarks, which measure and decide nothing.
func realTime(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if under(f.Room, "internal/clock", "cmd", "examples", "test", "bench") || f.Test && f.imported("testing/synctest") || strings.HasSuffix(f.Path, "bench_test.go") {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if pkg, name := f.selects(n); pkg == "time" && clockCalls[name] {
				out = append(out, f.at(n.Pos(), "clock", "time.%s outside internal/clock: take a clock.Clock", name))
			}
			return true
		})
	}
	return out
}

// sleeps refuses waiting by guess, in tests and elsewhere.
func sleeps(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if pkg, name := f.selects(n); pkg == "time" && name == "Sleep" {
				out = append(out, f.at(n.Pos(), "sleep", "time.Sleep: wait for the event (clock.Manual, testing/synctest, a channel)"))
			}
			return true
		})
	}
	return out
}

// osFiles are single files outside the rooms below that may import os.
var osFiles = map[string]string{
	"internal/sabotage/on.go": "reads the name of the break from the environment, in sabotage builds only",
	"source/stdin.go":         "the stdin source",
	// An example has no testing.T to ask for a folder.
	"dstream/example_sources_test.go": "shows a receiver, whose log is on the disk, a directory and the standard input",
}

// operatingSystem keeps files, environment and process facts behind vfs, so that every fault can be injected.
func operatingSystem(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if under(f.Room, "vfs", "cmd", "milltool", "examples", "internal/oracle", "internal/lint", "test", "bench") || osFiles[f.Path] != "" {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			switch p := strings.Trim(spec.Path.Value, `"`); {
			case p == "os", strings.HasPrefix(p, "os/"), p == "io/ioutil", p == "syscall", strings.HasPrefix(p, "golang.org/x/sys"):
				out = append(out, f.at(spec.Pos(), "os", "%s outside vfs: take a vfs.FS", p))
			}
		}
	}
	return out
}

// printing keeps the rooms silent: what a job prints goes to the context's writer. Examples in tests may print, as
// their output is what is tested.
func printing(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if under(f.Room, "cmd", "milltool", "examples") {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				out = append(out, f.at(n.Pos(), "print", "builtin %s: write to a writer that was given", id.Name))
			}
			pkg, name := f.selects(call.Fun)
			if pkg == "fmt" && strings.HasPrefix(name, "Print") && !f.Test || pkg == "log" {
				out = append(out, f.at(n.Pos(), "print", "%s.%s: write to a writer that was given", pkg, name))
			}
			return true
		})
	}
	return out
}

// sizes refuses long files: one theme a file.
func sizes(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if !f.Test && f.Lines > maxLines {
			out = append(out, Finding{File: f.Path, Rule: "size", Text: "more than 500 lines: split it by theme"})
		}
	}
	return out
}

// unfinishedWords mark work that was left; spelled apart so that this file does not find itself.
var unfinishedWords = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}

// unfinished refuses marks of unfinished work in comments and documents: such a thing is an issue, or done.
func unfinished(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				for _, w := range unfinishedWords {
					if strings.Contains(c.Text, w) {
						out = append(out, f.at(c.Pos(), "unfinished", "%s in a comment: do it, or file it", w))
					}
				}
			}
		}
	}
	for name, text := range t.Texts {
		for i, line := range strings.Split(text, "\n") {
			for _, w := range unfinishedWords {
				if strings.Contains(line, w) {
					out = append(out, Finding{File: name, Line: i + 1, Rule: "unfinished", Text: w + " in a document: do it, or file it"})
				}
			}
		}
	}
	return out
}

// goroutinesInNew refuses constructors and init functions that start goroutines: nothing runs before Start.
func goroutinesInNew(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if f.Test || under(f.Room, "cmd", "examples", "test", "bench") {
			continue
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || !strings.HasPrefix(fn.Name.Name, "New") && fn.Name.Name != "init" {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					out = append(out, f.at(n.Pos(), "go-in-new", "%s starts a goroutine: let Start or Run do it", fn.Name.Name))
				}
				return true
			})
		}
	}
	return out
}

// imported reports whether the file imports a path under any name.
func (f *File) imported(p string) bool {
	for _, q := range f.imports {
		if q == p {
			return true
		}
	}
	return false
}

// exportedDecl reports whether a function or a method on an exported type is visible to users.
func exportedDecl(fn *ast.FuncDecl) bool {
	if !fn.Name.IsExported() {
		return false
	}
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	name := typeName(fn.Recv.List[0].Type)
	return name == "" || token.IsExported(name)
}

// typeName is the name of a receiver's type, without pointer and type parameters; "" if it has none.
func typeName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
