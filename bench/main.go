package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// options are the command's flags, handed on to its child processes.
type options struct {
	procs, runs int
	quick       bool
	profile     string
	backlog     int   // MiB
	topic       topic // of a Kafka benchmark
}

func main() {
	var o options
	name := flag.String("bench", "all", "a benchmark's name, a comma-separated list of them, all, or list")
	child := flag.Bool("child", false, "measure in this process and print the raw sample (used by the command itself)")
	flag.IntVar(&o.procs, "procs", 5, "processes a benchmark")
	flag.IntVar(&o.runs, "runs", 7, "interleaved runs a process")
	flag.BoolVar(&o.quick, "quick", false, "tiny data, to see that all works; the figures mean nothing")
	flag.StringVar(&o.profile, "profile", "", "write a CPU profile of our side to this file (with -child); Kafka benchmarks write FILE.SIDE.RUN for each run of each side")
	flag.StringVar(&o.topic.Brokers, "brokers", "", "where the topic is (used by the command itself)")
	flag.StringVar(&o.topic.Name, "topic", "", "the topic to read, already filled (used by the command itself)")
	flag.IntVar(&o.backlog, "backlog", 2048, "MiB that kafka_backlog writes and works off; the embedded broker keeps them in memory")
	table := flag.Bool("table", false, "print the tables of docs/state-store.md instead")
	broker := flag.Bool("serve", false, "be the embedded broker (used by the command itself)")
	flag.Parse()
	if *broker {
		if err := serve(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench: broker:", err)
			os.Exit(1)
		}
		return
	}
	if *table {
		if err := tables(os.Stdout, o); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Stdout, *name, *child, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the named benchmarks and prints one line for each.
func run(w io.Writer, name string, child bool, o options) error {
	if name == "list" {
		for _, b := range benches {
			fmt.Fprintf(w, "%-22s %s\n", b.name, b.about)
		}
		return nil
	}
	chosen, err := choose(name)
	if err != nil {
		return err
	}
	for _, b := range chosen {
		if err := runOne(w, b, child, o); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// runOne measures a benchmark. The topic of a Kafka benchmark is made once, for all its processes.
func runOne(w io.Writer, b *bench, child bool, o options) (err error) {
	if b.maxProcs > 0 {
		o.procs, o.runs = min(o.procs, b.maxProcs), min(o.runs, b.maxRuns)
	}
	if b.input != nil && o.topic.Name == "" {
		var done func() error
		if o.topic, done, err = openTopic(b.layout, b.input(o)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	if child {
		s, err := b.measure(o)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(s)
	}
	samples, err := spawn(b, o)
	if err != nil {
		return err
	}
	line := b.judge(samples, o)
	if b.input != nil {
		line["broker"] = o.topic.broker()
	}
	text, err := b.format(line)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// choose finds benchmarks by name.
func choose(names string) ([]*bench, error) {
	if names == "all" {
		return benches, nil
	}
	var chosen []*bench
	for _, n := range strings.Split(names, ",") {
		i := slices.IndexFunc(benches, func(b *bench) bool { return b.name == n })
		if i < 0 {
			return nil, fmt.Errorf("no benchmark is called %q: try -bench list", n)
		}
		chosen = append(chosen, benches[i])
	}
	return chosen, nil
}

// spawn runs the benchmark in processes of its own, one after the other.
func spawn(b *bench, o options) ([]sample, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	samples := make([]sample, o.procs)
	for i := range samples {
		cmd := exec.Command(self, "-child", "-bench", b.name, fmt.Sprintf("-runs=%d", o.runs), fmt.Sprintf("-quick=%t", o.quick),
			"-brokers="+o.topic.Brokers, "-topic="+o.topic.Name, fmt.Sprintf("-backlog=%d", o.backlog))
		if b.cores > 0 {
			cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", b.cores))
		}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("process %d: %w", i+1, err)
		}
		if err := json.Unmarshal(out.Bytes(), &samples[i]); err != nil {
			return nil, fmt.Errorf("process %d: its sample: %w", i+1, err)
		}
	}
	return samples, nil
}
