package milltool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/statemill/statemill/vfs"
)

// The exit codes of a command.
const (
	// ExitOK is the exit code of success.
	ExitOK = 0
	// ExitFailure is that of an error, and of a finding: damage that verify
	// found, a key that is not there, a replay that differs.
	ExitFailure = 1
	// ExitUsage is that of arguments that make no command.
	ExitUsage = 2
)

// Env is all that a command touches. FS, Now, Wait and ID must be set; the writers
// default to nowhere.
type Env struct {
	// Name is the program's name in texts; empty means statemill.
	Name string
	// Args are the arguments, without the program's name.
	Args []string
	// Stdout takes results and Stderr errors and notes.
	Stdout, Stderr io.Writer
	// FS is where roots are. Host and process id of a tool that becomes an
	// owner come from it too.
	FS vfs.FS
	// Now is the time in unix nanoseconds.
	Now func() int64
	// Wait returns after d, or with the context's error when that ends first.
	Wait func(ctx context.Context, d time.Duration) error
	// ID gives a new id of letters and digits, unlike any other, for runs and
	// roots.
	ID func() string
	// Open opens the root in a folder; nil means a folder of FS.
	Open func(dir string) (vfs.Store, error)
	// Alive tells whether a process of this machine lives; nil means that it
	// cannot be known.
	Alive func(pid int) bool
	// Resolve gives a path of FS without symbolic links, as filepath.EvalSymlinks
	// does, so that fork knows where its new folder lies; nil means that there are
	// none.
	Resolve func(path string) (string, error)
	// Replay computes an epoch again with a job; nil means that the program has
	// no job, and so no command replay.
	Replay ReplayFunc
}

// usageError says that the arguments make no command.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errFound ends a command whose output already says what is wrong.
var errFound = errors.New("found")

// Run runs the command that env.Args name and returns the exit code. It may be
// called from any goroutine, and ends soon after ctx does.
func Run(ctx context.Context, env Env) int {
	if env.Name == "" {
		env.Name = "statemill"
	}
	if env.Stdout == nil {
		env.Stdout = io.Discard
	}
	if env.Stderr == nil {
		env.Stderr = io.Discard
	}
	if len(env.Args) == 0 {
		fmt.Fprint(env.Stderr, overview(&env))
		return ExitUsage
	}
	name, args := env.Args[0], env.Args[1:]
	if name == "help" || name == "-h" || name == "-help" || name == "--help" {
		return help(&env, args)
	}
	cmd, ok := find(&env, name)
	if !ok {
		fmt.Fprintf(env.Stderr, "%s: there is no command %q%s; %s help lists them\n", env.Name, shorten(name), elsewhere(name), env.Name)
		return ExitUsage
	}
	err := invoke(ctx, &env, cmd, args)
	var usage *usageError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(env.Stdout, cmd.help(&env))
		return ExitOK
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s %s: %v\nusage: %s; %s help %s says more\n", env.Name, name, err, cmd.usage(&env), env.Name, name)
		return ExitUsage
	case errors.Is(err, errFound):
		return ExitFailure
	}
	fmt.Fprintf(env.Stderr, "%s %s: %s\n", env.Name, name, clean(err.Error()))
	if hint := nextStep(err); hint != "" {
		fmt.Fprintf(env.Stderr, "%s %s: %s\n", env.Name, name, hint)
	}
	return ExitFailure
}

// invoke parses the arguments of a command and runs it.
func invoke(ctx context.Context, env *Env, cmd command, args []string) error {
	c := &call{env: env, name: cmd.name}
	flags := cmd.flagSet(c)
	run := cmd.bind(c, flags)
	pos, err := parseArgs(flags, args)
	if err != nil {
		return err
	}
	if len(pos) < len(cmd.args) {
		return usagef("%s", missingArgs(cmd.args[len(pos):]))
	}
	if len(pos) > len(cmd.args) && !cmd.more {
		return usagef("there is an argument too much: %q", shorten(pos[len(cmd.args)]))
	}
	c.args = pos
	err = run(ctx)
	if err != nil && !errors.Is(err, errFound) {
		return err
	}
	if _, werr := c.out.WriteTo(env.Stdout); werr != nil {
		return fmt.Errorf("write the output: %w", werr)
	}
	return err
}

// missingArgs says which arguments a command lacks.
func missingArgs(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is missing"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are missing"
}

// call is one command that runs.
type call struct {
	env  *Env
	name string
	args []string // without flags
	json bool
	out  bytes.Buffer // what will be printed, once all of it is known
}

// note tells something besides the result.
func (c *call) note(format string, args ...any) {
	fmt.Fprintf(c.env.Stderr, "%s %s: %s\n", c.env.Name, c.name, clean(fmt.Sprintf(format, args...)))
}
