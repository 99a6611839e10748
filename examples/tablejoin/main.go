package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/examples/internal/program"
	"github.com/statemill/statemill/source"
)

const usage = `tablejoin sets the name and the price of its product beside each order.

usage: tablejoin [flags]

It plays a small script of orders and of changes of prices, one list of each a
batch, and prints a line for every order: names come from a fixed table, prices
from a table that the changes keep. It ends by itself, and checks that every order
was given once. With -checkpoint a stopped run is gone on with by the next one.

Exit status: 0 all orders accounted for; 1 not, or the run failed or was ended
early; 2 wrong usage.

flags:
`

// options are the program's flags.
type options struct {
	interval   time.Duration
	checkpoint string // folder; none if empty
}

func main() { program.Main(run) }

// names is the fixed table.
func names() []product {
	return []product{{Key: "ap", Value: "apples"}, {Key: "pe", Value: "pears"}, {Key: "pl", Value: "plums"}}
}

// prices is what the table of prices begins with.
func prices() map[string]int { return map[string]int{"ap": 50, "pe": 70} }

// script is what is ordered and what changes in each batch.
func script() (orders [][]order, changes [][]change) {
	orders = [][]order{
		{{1, "ap", 3}, {2, "pe", 1}},
		{{3, "ap", 2}}, // at the new price, which came in the same batch
		{{4, "pl", 10}},
		{{5, "pl", 10}, {6, "fi", 1}},
		{{7, "fi", 2}, {8, "pe", 4}},
		{},
		{{9, "pe", 1}},
	}
	changes = [][]change{
		{},
		{{"ap", 60}},
		{},
		{{"pl", 20}},
		{{"fi", 90}},
		{{"pe", 0}},
		{},
	}
	return orders, changes
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := program.NewFlags("tablejoin", stderr)
	var o options
	f.DurationVar(&o.interval, "interval", 100*time.Millisecond, "batch `interval`")
	f.StringVar(&o.checkpoint, "checkpoint", "", "`folder` in which prices and position outlive the process")
	if status, over := program.Parse(f, args, usage, stdout); over {
		return status
	}
	if f.NArg() > 0 || o.interval <= 0 {
		fmt.Fprintln(stderr, "tablejoin: takes no arguments and an interval above 0; tablejoin -h explains")
		return 2
	}
	if err := play(ctx, o, stdout); err != nil {
		fmt.Fprintln(stderr, "tablejoin:", err)
		return 1
	}
	return 0
}

// play runs the job to the end of the script.
func play(ctx context.Context, o options, stdout io.Writer) error {
	orders, changes := script()
	ordered, changed := source.NewQueue(1, orders...), source.NewQueue(1, changes...)
	ordered.Finish()
	changed.Finish()

	given := map[int]int{} // how often, by the order's number
	err := dstream.Run(ctx, o.interval, job(ordered, changed, names(), prices(), func(b dstream.Batch, code string, n named) error {
		given[n.Left.Number]++
		_, err := fmt.Fprintln(stdout, line(b, code, n))
		return err
	}), program.Options(o.checkpoint)...)
	if err != nil {
		return err
	}
	all := 0
	for _, batch := range orders {
		all += len(batch)
		for _, o := range batch {
			if given[o.Number] > 1 {
				return fmt.Errorf("order %d was given %d times", o.Number, given[o.Number])
			}
		}
	}
	switch {
	case o.checkpoint != "" && ctx.Err() != nil:
		err = program.ErrGoOn
	case o.checkpoint != "": // earlier runs may have had the most of it
		_, err = fmt.Fprintf(stdout, "the script is over; %d of its %d orders came in this run\n", len(given), all)
	case len(given) != all:
		err = fmt.Errorf("%d of %d orders were given", len(given), all)
	default:
		_, err = fmt.Fprintf(stdout, "all %d orders joined\n", all)
	}
	return err
}

// line is an order as text.
func line(b dstream.Batch, code string, n named) string {
	name := n.Right.OrElse("unknown product " + code)
	price, known := n.Left.Price.Get()
	if !known {
		return fmt.Sprintf("batch %d: order %d: %d %s: no price", b.Epoch, n.Left.Number, n.Left.Pieces, name)
	}
	sum := price * n.Left.Pieces
	return fmt.Sprintf("batch %d: order %d: %d %s at %d.%02d: %d.%02d", b.Epoch, n.Left.Number, n.Left.Pieces, name, price/100, price%100, sum/100, sum%100)
}
