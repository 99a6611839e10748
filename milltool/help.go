package milltool

import (
	"flag"
	"fmt"
	"strings"
)

// overview is the list of commands.
func overview(env *Env) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s shows and repairs the state that a Statemill job keeps in a checkpoint root.\n\n", env.Name)
	fmt.Fprintf(&b, "usage: %s COMMAND [flags] DIR …\n\ncommands:\n", env.Name)
	for _, c := range commands(env) {
		fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.short)
	}
	fmt.Fprintf(&b, "\n%s help COMMAND tells the flags and the output of a command.\n", env.Name)
	b.WriteString("Reading commands take no lock and write nothing: they may be used while the job runs.\n")
	b.WriteString("Exit codes: 0 success, 1 failure or finding, 2 wrong usage.\n")
	return b.String()
}

// help is the command help.
func help(env *Env, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(env.Stdout, overview(env))
		return ExitOK
	}
	cmd, ok := find(env, args[0])
	if !ok || len(args) > 1 {
		fmt.Fprintf(env.Stderr, "%s help: there is no command %q%s; %s help lists them\n", env.Name, shorten(strings.Join(args, " ")), elsewhere(args[0]), env.Name)
		return ExitUsage
	}
	fmt.Fprint(env.Stdout, cmd.help(env))
	return ExitOK
}

// help is the page of one command.
func (cmd *command) help(env *Env) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n\nusage: %s\n\n%s\n\nflags:\n", env.Name, cmd.name, cmd.short, cmd.usage(env), cmd.long)
	cmd.eachFlag(env, func(f *flag.Flag, value string) {
		_, usage := flag.UnquoteUsage(f)
		indent := "\n        "
		fmt.Fprintf(&b, "  %s%s%s\n", strings.TrimSuffix("-"+f.Name+" "+value, " "), indent, strings.ReplaceAll(usage, "\n", indent))
	})
	return b.String()
}

// elsewhere says where a command is that this program does not have.
func elsewhere(name string) string {
	if name == replayCommand().name {
		return " here: it needs the job, and a program that calls milltool.Main with its job has it"
	}
	return ""
}
