package milltool

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../docs/statemill.md"

// TestPage: every console block of docs/statemill.md shows what its commands print, so that it cannot rot; the flag -rewrite
// writes the outputs anew.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	env := fixedEnv(t)
	env.Replay = noReplay
	var got strings.Builder
	inside, first := false, false
	for line := range strings.Lines(string(b)) {
		cmd, isCmd := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ statemill ")
		switch {
		case line == "```console\n":
			inside, first = true, true
		case inside && line == "```\n":
			inside = false
		case inside && isCmd:
			if !first {
				got.WriteString("\n")
			}
			first = false
			got.WriteString(terminal(t, env, cmd))
			continue
		case inside:
			continue
		}
		got.WriteString(line)
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(b), got.String())
}

// TestPageIsComplete: the page has the help of every command, and so every flag, and names every field of every result.
func TestPageIsComplete(t *testing.T) {
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	env := Env{Name: "statemill", Replay: noReplay}
	results := map[string]any{
		"versions": versionRow{}, "inspect": inspection{}, "get": getResult{}, "dump": dumpRow{}, "diff": diffRow{}, "history": historyRow{},
		"verify": []any{finding{}, verdict{}}, "repair": repairStep{}, "rescale": rescaleResult{}, "fork": forkResult{}, "replay": replayResult{},
	}
	for _, cmd := range commands(&env) {
		require.Contains(t, string(b), cmd.help(&env))
		require.Contains(t, results, cmd.name)
		list, ok := results[cmd.name].([]any)
		if !ok {
			list = []any{results[cmd.name]}
		}
		for _, r := range list {
			for _, f := range fields(reflect.TypeOf(r)) {
				require.Contains(t, string(b), "`"+f+"`", "field of %s -json", cmd.name)
			}
		}
	}
}

// fields lists the names that a struct has in JSON, those of structs of this package inside it too.
func fields(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[finding]().PkgPath() {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		if f.IsExported() || f.Anonymous {
			names = append(names, fields(f.Type)...)
		}
	}
	return names
}
