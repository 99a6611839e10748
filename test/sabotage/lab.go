package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Break is one named fault and the test that must catch it.
type Break struct {
	Name    string // as in sabotage.On
	Package string // folder of the test, from the module's root
	Test    string // the test, with subtests after slashes; each part is matched whole
	Race    bool   // the break is a data race: build the test with the race detector
}

// limit is the longest that one test may take; a break that makes its test hang is not a catch.
const limit = 2 * time.Minute

// A binary is the test binary of one package.
type binary struct {
	path  string
	rapid bool  // has rapid's flags
	err   error // of the build
}

// A lab builds each test binary once and runs tests in it.
type lab struct {
	root, bin string
	built     map[string]*binary
}

// A verdict is what one break came to.
type verdict struct {
	caught       bool
	text, output string
}

// try runs the test of a break unbroken and broken.
func (l *lab) try(b Break) verdict {
	bin := l.build(b)
	if bin.err != nil {
		return verdict{text: "MISSED: test does not build", output: bin.err.Error()}
	}
	clean := l.test(bin, b, "")
	if clean.text != "passed" {
		return verdict{text: "MISSED: without the break the test " + clean.text, output: clean.output}
	}
	broken := l.test(bin, b, b.Name)
	if broken.text != "failed" {
		return verdict{text: "MISSED: with the break the test " + broken.text, output: broken.output}
	}
	return verdict{caught: true, text: "caught"}
}

// build compiles a package's tests with the build tag.
func (l *lab) build(b Break) *binary {
	key := fmt.Sprint(b.Package, b.Race)
	if bin := l.built[key]; bin != nil {
		return bin
	}
	bin := &binary{path: filepath.Join(l.bin, fmt.Sprintf("%d.test", len(l.built)))}
	l.built[key] = bin
	args := []string{"test", "-c", "-tags", "sabotage", "-o", bin.path}
	if b.Race {
		args = append(args, "-race")
	}
	if out, err := l.command("go", append(args, "./"+b.Package)...).CombinedOutput(); err != nil {
		bin.err = fmt.Errorf("go test -c ./%s: %w\n%s", b.Package, err, out)
		return bin
	}
	if _, err := os.Stat(bin.path); err != nil {
		bin.err = fmt.Errorf("go test -c ./%s made no binary: the package has no tests", b.Package)
		return bin
	}
	// The binary itself tells its flags; asking fails by design, so only the text counts.
	usage, _ := exec.Command(bin.path, "-h").CombinedOutput()
	bin.rapid = strings.Contains(string(usage), "-rapid.nofailfile")
	return bin
}

func (l *lab) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = l.root
	return cmd
}

// test runs one test in its package's folder; text says what became of it.
func (l *lab) test(bin *binary, b Break, sabotage string) verdict {
	args := []string{"-test.run", pattern(b.Test), "-test.v", "-test.timeout", limit.String()}
	if bin.rapid {
		// A caught break must not leave a failing case behind and need not be shrunk; the same cases every time, so that
		// a catch is not luck.
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=100ms", "-rapid.seed=1")
	}
	cmd := exec.Command(bin.path, args...)
	cmd.Dir = filepath.Join(l.root, filepath.FromSlash(b.Package))
	cmd.Env = append(os.Environ(), "STATEMILL_SABOTAGE="+sabotage)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return verdict{text: "did not run: " + err.Error()}
	}
	return verdict{text: judge(string(out), b.Test, err == nil), output: string(out)}
}

// pattern makes a -test.run expression that matches the named test alone.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// judge reads a test's output: passed, failed, or why it is neither.
func judge(out, test string, exitZero bool) string {
	reported := func(word string) bool {
		return regexp.MustCompile(`(?m)^\s*--- ` + word + `: ` + regexp.QuoteMeta(test) + ` \(`).MatchString(out)
	}
	switch {
	case strings.Contains(out, "panic: test timed out after"):
		return "timed out"
	case !exitZero && reported("FAIL"):
		return "failed"
	case exitZero && reported("PASS"):
		return "passed"
	case reported("SKIP"):
		return "was skipped"
	case exitZero:
		return "was not found"
	default:
		return "died without being reported as failed"
	}
}
