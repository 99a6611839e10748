package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	only := flag.String("only", "", "run one break alone")
	verbose := flag.Bool("v", false, "show the end of what a test printed when its verdict is bad")
	flag.Parse()
	root, err := moduleRoot()
	if err == nil {
		err = run(os.Stdout, root, table, *only, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sabotage:", err)
		os.Exit(1)
	}
}

// run checks the table against the source, then tries every break; it prints one line for each.
func run(w io.Writer, root string, breaks []Break, only string, verbose bool) error {
	sites, err := findSites(root)
	if err != nil {
		return err
	}
	faults := compare(sites, breaks)
	for _, f := range faults {
		fmt.Fprintln(w, "fault:", f)
	}
	bin, err := os.MkdirTemp("", "sabotage")
	if err != nil {
		return fmt.Errorf("make a folder for test binaries: %w", err)
	}
	defer os.RemoveAll(bin)
	lab := &lab{root: root, bin: bin, built: map[string]*binary{}}
	caught, tried := 0, 0
	for _, b := range breaks {
		if only != "" && b.Name != only || len(sites[b.Name]) == 0 {
			continue
		}
		tried++
		v := lab.try(b)
		if v.caught {
			caught++
		}
		fmt.Fprintf(w, "%-30s %-14s %-50s %s\n", b.Name, b.Package, b.Test, v.text)
		if verbose && !v.caught {
			fmt.Fprintln(w, indent(v.output))
		}
	}
	fmt.Fprintf(w, "sabotage: breaks=%d caught=%d missed=%d faults=%d\n", tried, caught, tried-caught, len(faults))
	switch {
	case tried == 0 && only != "":
		return fmt.Errorf("no break is called %q", only)
	case caught < tried || len(faults) > 0:
		return fmt.Errorf("%d breaks were not caught, %d faults in the table", tried-caught, len(faults))
	}
	return nil
}

// moduleRoot asks the go command, so that the runner works from any folder of the module.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("run it inside the module")
	}
	return filepath.Dir(mod), nil
}

// indent sets a test's output apart, and shows its end alone.
func indent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > 40 {
		lines = append([]string{"…"}, lines[len(lines)-40:]...)
	}
	return "    " + strings.Join(lines, "\n    ")
}
