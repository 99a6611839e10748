package lint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A snippet is a small tree and the one rule that must find something in it; an empty rule means that it is clean.
type snippet struct {
	name, path, src, rule string
}

// doc begins a well-documented file of a package.
func doc(pkg, body string) string {
	return "// Package " + pkg + " is a snippet.\npackage " + pkg + "\n" + body
}

// TestRulesBite feeds every rule what it must refuse, and the nearest thing that it must not.
func TestRulesBite(t *testing.T) {
	snippets := []snippet{
		{"edge that is not listed", "statemap/a.go", doc("statemap", `import _ "github.com/statemill/statemill/rdd"`), "imports"},
		{"call back up", "rdd/a.go", doc("rdd", `import _ "github.com/statemill/statemill/dstream"`), "imports"},
		{"listed edge", "rdd/a.go", doc("rdd", `import _ "github.com/statemill/statemill/partitioner"`), ""},
		{"the ground", "rdd/a.go", doc("rdd", `import _ "github.com/statemill/statemill/internal/pool"`), ""},
		{"unknown room", "cellar/a.go", doc("cellar", ``), "imports"},
		{"test uses the kit", "rdd/a_test.go", `package rdd_test` + "\n" + `import _ "github.com/statemill/statemill/milltest"`, ""},
		{"test goes up", "rdd/a_test.go", `package rdd_test` + "\n" + `import _ "github.com/statemill/statemill/dstream"`, "imports"},
		{"kfake in a public package", "kafka/a.go", doc("kafka", `import _ "github.com/twmb/franz-go/pkg/kfake"`), "imports"},
		{"kfake in a test of a public package", "kafka/a_test.go", "package kafka\n" + `import _ "github.com/twmb/franz-go/pkg/kfake"`, "imports"},
		{"kfake in kafka/embedded", "kafka/embedded/a.go", doc("embedded", `import _ "github.com/twmb/franz-go/pkg/kfake"`), ""},
		{"kfake in the slow tests", "test/kafka/a_test.go", "package kafka\n" + `import _ "github.com/twmb/franz-go/pkg/kfake"`, ""},
		{"unlisted module", "rdd/a.go", doc("rdd", `import _ "example.com/left-pad"`), "imports"},
		{"testify outside tests", "rdd/a.go", doc("rdd", `import _ "github.com/stretchr/testify/require"`), "imports"},

		{"clock", "rdd/a.go", doc("rdd", "import \"time\"\nfunc f() any { return time.Now() }"), "clock"},
		{"clock as a value", "rdd/a.go", doc("rdd", "import clk \"time\"\nfunc f() any { return clk.Now }"), "clock"},
		{"clock in a test", "rdd/a_test.go", "package rdd\nimport \"time\"\nfunc f() any { return time.Since(time.Time{}) }", "clock"},
		{"clock in a benchmark", "rdd/bench_test.go", "package rdd\nimport \"time\"\nfunc f() any { return time.Now() }", ""},
		{"clock in its room", "internal/clock/a.go", doc("clock", "import \"time\"\nfunc f() any { return time.Now() }"), ""},
		{"clock in a bubble", "rdd/a_test.go", "package rdd\nimport (\n\"time\"\n_ \"testing/synctest\")\nfunc f() any { return time.Now() }", ""},
		{"sleep in a test", "rdd/a_test.go", "package rdd\nimport \"time\"\nfunc f() { time.Sleep(1) }", "sleep"},

		{"os", "rdd/a.go", doc("rdd", `import _ "os"`), "os"},
		{"os/exec in a test", "rdd/a_test.go", "package rdd\nimport _ \"os/exec\"", "os"},
		{"os in vfs", "vfs/a.go", doc("vfs", `import _ "os"`), ""},

		{"fmt.Println", "rdd/a.go", doc("rdd", "import \"fmt\"\nfunc f() { fmt.Println() }"), "print"},
		{"builtin println", "rdd/a.go", doc("rdd", "func f() { println() }"), "print"},
		{"log", "rdd/a.go", doc("rdd", "import \"log\"\nfunc f() { log.Fatal() }"), "print"},
		{"fmt.Println in an example", "examples/x/a.go", "// Command x is a snippet.\npackage main\nimport \"fmt\"\nfunc main() { fmt.Println() }", ""},
		{"fmt.Fprintln", "rdd/a.go", doc("rdd", "import (\"fmt\"; \"io\")\nfunc f(w io.Writer) { fmt.Fprintln(w) }"), ""},

		{"no package comment", "rdd/a.go", "package rdd", "package-doc"},
		{"wrong package comment", "rdd/a.go", "// Something.\npackage rdd", "package-doc"},
		{"function without a comment", "rdd/a.go", doc("rdd", "func F() {}"), "doc"},
		{"directive is no comment", "rdd/a.go", doc("rdd", "//go:noinline\nfunc F() {}"), "doc"},
		{"method without a comment", "rdd/a.go", doc("rdd", "// T is a type.\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}"), "doc"},
		{"method of a hidden type", "rdd/a.go", doc("rdd", "type t struct{}\nfunc (t) M() {}"), ""},
		{"type without a comment", "rdd/a.go", doc("rdd", "type T int"), "doc"},
		{"option without a comment", "rdd/a.go", doc("rdd", "// TOptions are options.\ntype TOptions struct { Size int }"), "doc"},
		{"option named by its type", "rdd/a.go", doc("rdd", "// TOptions are options: Size in bytes.\ntype TOptions struct { Size int }"), ""},
		{"well-known method", "rdd/a.go", doc("rdd", "// T is a type.\ntype T struct{}\nfunc (T) String() string { return \"\" }"), ""},
		{"interface method without a comment", "rdd/a.go", doc("rdd", "// T is a type.\ntype T interface { M(); N() }"), "doc"},
		{"interface methods with one comment", "rdd/a.go", doc("rdd", "// T is a type.\ntype T interface {\n// M and N are methods.\nM(); N() }"), ""},
		{"interface of one method", "rdd/a.go", doc("rdd", "// T is a type.\ntype T interface { M() }"), ""},
		{"constant without a comment", "rdd/a.go", doc("rdd", "const C = 1"), "doc"},
		{"constants with a group comment", "rdd/a.go", doc("rdd", "// The two.\nconst (\nC = 1\nD = 2\n)"), ""},

		{"long file", "rdd/a.go", doc("rdd", strings.Repeat("\n", 500)), "size"},
		{"long test file", "rdd/a_test.go", "package rdd" + strings.Repeat("\n", 501), ""},
		{"left work", "rdd/a.go", doc("rdd", "// "+"TO"+"DO: later\n"), "unfinished"},
		{"left work in a document", "README.md", "all fine\n" + "FIX" + "ME\n", "unfinished"},

		{"goroutine in New", "rdd/a.go", doc("rdd", "func NewT() { go f() }\nfunc f() {}\n// NewT is hidden."), "go-in-new"},
		{"goroutine in init", "rdd/a.go", doc("rdd", "func init() { go f() }\nfunc f() {}"), "go-in-new"},
	}
	for _, s := range snippets {
		t.Run(s.name, func(t *testing.T) { s.check(t) })
	}
}

// TestPackageStateBites: the rule for package variables, form by form.
func TestPackageStateBites(t *testing.T) {
	for _, s := range []snippet{
		{"sentinel", "", "import \"errors\"\nvar errX = errors.New(\"x\")", ""},
		{"assertion", "", "type t struct{}\nvar _ any = (*t)(nil)", ""},
		{"table", "", "var primes = [...]int{2, 3, 5}", ""},
		{"map table that is read", "", "var m = map[string]bool{\"a\": true}\nfunc f() bool { return m[\"a\"] }", ""},
		{"method of a pure call", "", "import \"reflect\"\nvar name = reflect.TypeFor[int]().Name()", ""},
		{"method of another call", "", "var name = f().Name()\nfunc f() interface{ Name() string } { return nil }", "state"},
		{"counter", "", "var n int", "state"},
		{"counter with a value", "", "var n = 1\nfunc f() { n++ }", "state"},
		{"assigned", "", "var n = 1\nfunc f() { n = 2 }", "state"},
		{"element assigned", "", "var m = map[string]bool{}\nfunc f() { m[\"a\"] = true }", "state"},
		{"element deleted", "", "var m = map[string]bool{\"a\": true}\nfunc f() { delete(m, \"a\") }", "state"},
		{"address taken", "", "var n = 1\nfunc f() *int { return &n }", "state"},
		{"lock", "", "import \"sync\"\nvar mu = sync.Mutex{}", "state"},
		{"pool behind a pointer", "", "type free struct{}\nfunc (*free) put() {}\nvar p = &free{}\nfunc f() { p.put() }", "state"},
		{"value of a call", "", "var n = f()\nfunc f() int { return 1 }", "state"},
		{"channel", "", "var c = make(chan int)", "state"},
	} {
		s.path, s.src = "rdd/a.go", doc("rdd", s.src)
		t.Run(s.name, func(t *testing.T) { s.check(t) })
	}
}

func (s snippet) check(t *testing.T) {
	tree, err := Parse(map[string]string{s.path: s.src})
	require.NoError(t, err)
	got := map[string]bool{}
	for _, f := range Check(tree) {
		got[f.Rule] = true
		assert.Equal(t, s.path, f.File)
		assert.NotEmpty(t, f.Text)
		if s.rule == "" {
			t.Errorf("must be clean: %s", f)
		}
	}
	if s.rule != "" {
		assert.True(t, got[s.rule], "rule %s must find something in %q; found: %v", s.rule, s.src, got)
	}
}

// TestWrittenInAnotherFile: the rule for package variables looks at the whole package.
func TestWrittenInAnotherFile(t *testing.T) {
	tree, err := Parse(map[string]string{
		"rdd/a.go": doc("rdd", "var n = 1"),
		"rdd/b.go": "package rdd\nfunc f() { n = 2 }",
	})
	require.NoError(t, err)
	found := packageState(tree)
	require.Len(t, found, 1)
	assert.Equal(t, "rdd/b.go", found[0].File)
	assert.Equal(t, 2, found[0].Line)
}

// TestTwoPackageComments: godoc would print both.
func TestTwoPackageComments(t *testing.T) {
	tree, err := Parse(map[string]string{"rdd/a.go": doc("rdd", ""), "rdd/b.go": doc("rdd", "")})
	require.NoError(t, err)
	require.Len(t, packageDocs(tree), 1)
}

// TestParseRefusesBadSource: a file that does not parse is an error that names it.
func TestParseRefusesBadSource(t *testing.T) {
	_, err := Parse(map[string]string{"rdd/broken.go": "package"})
	require.ErrorContains(t, err, "rdd/broken.go")
}
