package lint

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a body of Transform or ForeachRDD needs of package rdd (methods behind their type).
const rddCalls = `Collect Take First Top Count Reduce Fold Distinct SortBy KeyBy Join LeftOuterJoin SubtractByKey Cogroup
	ForeachPartition RDD_NumPartitions Glom Pairs`

// What else a job of a Spark user calls of package dstream.
const jobCalls = `DStream_Cache DStream_Remember MapWithStateDStream_Checkpoint MapWithStateDStream_StateSnapshots
	StreamingContext_Counter Parallelize Run ReadRecordFiles SourceRanges`

// withoutExample lists sources, operators and outputs, which are the functions of dstream that give a stream or take
// one, and the calls above, that have no example with an output.
func withoutExample(t *Tree) (out []string) {
	have, want := map[string]bool{}, map[string]bool{}
	for _, list := range []struct{ room, calls string }{{"rdd", rddCalls}, {"dstream", jobCalls}} {
		for name := range strings.FieldsSeq(list.calls) {
			want[list.room+"."+name] = true
		}
	}
	for _, f := range t.Files {
		if f.Room != "dstream" && f.Room != "rdd" {
			continue
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			name, example := strings.CutPrefix(fn.Name.Name, "Example")
			switch {
			case f.Test && example && outputOf(f, fn):
				have[f.Room+"."+name] = true
			case !f.Test && f.Room == "dstream" && ast.IsExported(fn.Name.Name) && (takesStream(fn) || givesStream(fn)):
				want["dstream."+fn.Name.Name] = true
			}
		}
	}
	for name := range want {
		if !have[name] {
			out = append(out, name)
		}
	}
	return out
}

// outputOf says that an example has an output that is compared.
func outputOf(f *File, fn *ast.FuncDecl) bool {
	for _, c := range f.Syntax.Comments {
		if c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() && strings.Contains(strings.ToLower(c.Text()), "output:") {
			return true
		}
	}
	return false
}

// givesStream says that a stream comes out.
func givesStream(fn *ast.FuncDecl) (yes bool) {
	if fn.Type.Results == nil {
		return false
	}
	ast.Inspect(fn.Type.Results, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		yes = yes || ok && strings.HasSuffix(id.Name, "DStream")
		return true
	})
	return yes
}

// takesStream says that a parameter is a Stream, or several of them.
func takesStream(fn *ast.FuncDecl) (yes bool) {
	for _, p := range fn.Type.Params.List {
		ast.Inspect(p.Type, func(n ast.Node) bool {
			if _, ok := n.(*ast.FuncType); ok {
				return false
			}
			id, ok := n.(*ast.Ident)
			yes = yes || ok && id.Name == "Stream"
			return true
		})
	}
	return yes
}

// Every source, operator and output has an example that is run.
func TestExamples(t *testing.T) {
	tree, err := Load(repositoryRoot(t))
	require.NoError(t, err)
	require.Empty(t, withoutExample(tree), "write an Example… with // Output: for each")

	// The test can fail.
	var less Tree
	for _, f := range tree.Files {
		if f.Room != "rdd" || !f.Test {
			less.Files = append(less.Files, f)
		}
	}
	require.Contains(t, withoutExample(&less), "rdd.Glom")
	less.Files = nil
	for _, f := range tree.Files {
		if f.Room != "dstream" || !f.Test {
			less.Files = append(less.Files, f)
		}
	}
	missing := withoutExample(&less)
	for _, name := range []string{"From", "SocketStream", "StdinStream", "DirStream", "QueueNamed", "Constant", "ReceiverStream", "Map", "Union", "Print", "Output"} {
		require.Contains(t, missing, "dstream."+name)
	}
}
