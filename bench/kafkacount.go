package main

import (
	"fmt"
	"strings"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/kafka"
	"github.com/statemill/statemill/source"
)

// A counter is a job that counts the first words of lines: FlatMap → MapPair → mapWithState → outputs appended.
type counter struct {
	driver
	out sink[output]
	// put is called before each batch; nil where the input waits in Kafka.
	put func(in lines)
}

// counters have two workers and state partitions, and as many source partitions as the topic.
const counterCores = 2

func startCounter(c *counter, lines dstream.Stream[string]) (*counter, error) {
	words := dstream.FlatMapEmit(lines, func(line string, emit func(string)) error {
		word, _, _ := strings.Cut(line, " ")
		emit(word)
		return nil
	})
	ones := dstream.MapPair(words, func(word string) (string, int64) { return word, 1 })
	counts := dstream.MapWithState(ones, dstream.Function(add).Named("counts"))
	c.out = newSink[output](counterCores)
	dstream.ForeachRDD(counts, c.out.collect)
	return c, c.ssc.Start()
}

// countTopic is the job over Kafka.
func countTopic(t topic, perBatch int) (*counter, error) {
	c := &counter{driver: newDriver(counterCores, dstream.WithMaxRecordsPerBatch(int64(perBatch)))}
	records := kafka.DirectStream(c.ssc, "lines", kafka.Brokers(t.seeds()...), kafka.Topics(t.Name), kafka.FromEarliest())
	return startCounter(c, dstream.Map(records, kafka.Record.Text))
}

// countLines is the same job over lines in memory.
func countLines() (*counter, error) {
	c := &counter{driver: newDriver(counterCores)}
	in := newSliceSource[lines, string](kafkaPartitions)
	c.put = in.put
	return startCounter(c, dstream.From(c.ssc, "lines", source.Source[string](in)))
}

func (c *counter) batch(in lines) error {
	if c.put != nil {
		c.put(in)
	}
	if err := c.tick(); err != nil {
		return err
	}
	if n := c.out.len(); n != in.len() {
		return fmt.Errorf("%d outputs of %d records", n, in.len())
	}
	return nil
}

// A countInput is the content of the topic: batches that hold every key, then those of the runs.
type countInput struct {
	*data
	runs int
}

func newCountInput(o options, keys int) countInput {
	return countInput{newData(o, keys, batchSize), o.runs}
}

// load gives whole batches with every key at least once.
func (c countInput) load(emit func(lines) error) error {
	all := c.all()
	if missing := (c.perBatch - all.len()%c.perBatch) % c.perBatch; missing > 0 {
		more := c.fill(missing, func(int) int { return c.rng.IntN(c.n) })
		all.keys, all.values = append(all.keys, more.keys...), append(all.values, more.values...)
	}
	for _, r := range all.chunks(c.perBatch) {
		if err := emit(r.lines()); err != nil {
			return err
		}
	}
	return nil
}

// write gives all of it.
func (c countInput) write(emit func(lines) error) error {
	if err := c.load(emit); err != nil {
		return err
	}
	for range c.runs * jobBatches {
		if err := emit(c.next().lines()); err != nil {
			return err
		}
	}
	return nil
}

func fillCount(keys int) func(o options) func(emit func(lines) error) error {
	return func(o options) func(emit func(lines) error) error { return newCountInput(o, keys).write }
}

// measureCount compares the job over Kafka with its parts: fetching and decoding the same records, and the same job over
// the same lines in memory. All three have seen every key before, in batches of the same size.
func measureCount(keys int) func(o options) (sample, error) {
	return func(o options) (sample, error) {
		in := newCountInput(o, keys)
		job, err := countTopic(o.topic, in.perBatch)
		if err != nil {
			return sample{}, err
		}
		memory, err := countLines()
		if err != nil {
			return sample{}, err
		}
		fetch, err := newFetcher(o.topic)
		if err != nil {
			return sample{}, err
		}
		defer fetch.src.Close()
		sides := []struct {
			name  string
			batch func(lines) error
		}{
			{"job", job.batch},
			{"fetch", func(in lines) error { return fetch.batch(in.len()) }},
			{"memory", memory.batch},
		}
		if err := in.load(func(l lines) error {
			for _, s := range sides {
				if err := s.batch(l); err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
			}
			return nil
		}); err != nil {
			return sample{}, err
		}
		costs := map[string][]cost{}
		for run := range o.runs {
			var batches []lines
			for range jobBatches {
				batches = append(batches, in.next().lines())
			}
			for turn := range sides {
				s := sides[(run+turn)%len(sides)]
				spent, err := o.meter(s.name, run, jobBatches*in.perBatch, func() error {
					for _, b := range batches {
						if err := s.batch(b); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return sample{}, fmt.Errorf("%s: %w", s.name, err)
				}
				costs[s.name] = append(costs[s.name], spent)
			}
		}
		out := sample{Figures: map[string]float64{"keys": float64(in.n), "records_per_run": float64(jobBatches * in.perBatch)}}
		whole, parts := out.side("job", costs["job"]), out.side("fetch", costs["fetch"])+out.side("memory", costs["memory"])
		out.Figures["ratio"] = whole / parts
		if err := job.close(); err != nil {
			return out, err
		}
		return out, memory.close()
	}
}
