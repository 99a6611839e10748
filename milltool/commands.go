package milltool

import (
	"context"
	"flag"
	"strings"
)

// command is one of the tool's commands.
type command struct {
	name  string
	args  []string // the names of its arguments in usage texts
	more  bool     // the last argument may come more than once
	short string   // one line
	long  string   // what help says besides
	json  string   // what -json gives
	// bind declares the flags and returns what runs the command.
	bind func(c *call, flags *flag.FlagSet) func(context.Context) error
}

// commands are all commands, in the order of the overview.
func commands(env *Env) []command {
	list := []command{
		versionsCommand(), inspectCommand(), getCommand(), dumpCommand(), diffCommand(), historyCommand(),
		verifyCommand(), repairCommand(), rescaleCommand(), forkCommand(),
	}
	if env.Replay != nil {
		list = append(list, replayCommand())
	}
	return list
}

func find(env *Env, name string) (command, bool) {
	for _, c := range commands(env) {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// flagSet makes the flags that all commands have.
func (cmd *command) flagSet(c *call) *flag.FlagSet {
	flags := flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	if cmd.json != "" {
		flags.BoolVar(&c.json, "json", false, "print JSON: "+cmd.json)
	}
	return flags
}

// usage is the one line that shows how the command is called.
func (cmd *command) usage(env *Env) string {
	b := []string{env.Name, cmd.name}
	b = append(b, cmd.args...)
	if cmd.more {
		b[len(b)-1] += "…"
	}
	cmd.eachFlag(env, func(f *flag.Flag, value string) {
		b = append(b, "["+strings.TrimSuffix("-"+f.Name+" "+value, " ")+"]")
	})
	return strings.Join(b, " ")
}

// eachFlag calls do for every flag, in the order of their names, -json last.
func (cmd *command) eachFlag(env *Env, do func(f *flag.Flag, value string)) {
	c := &call{env: env, name: cmd.name}
	flags := cmd.flagSet(c)
	cmd.bind(c, flags)
	visit := func(f *flag.Flag) {
		value, _ := flag.UnquoteUsage(f)
		if isBool(f) {
			value = ""
		}
		do(f, value)
	}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "json" {
			visit(f)
		}
	})
	if f := flags.Lookup("json"); f != nil {
		visit(f)
	}
}
