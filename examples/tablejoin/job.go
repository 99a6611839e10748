package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/statemill/statemill/dstream"
	"github.com/statemill/statemill/source"
)

// product is a row of the fixed table.
type product = dstream.Pair[string, string] // code → name

// change is a change of the table of prices.
type change struct {
	Product string
	Price   int // cents; 0 takes the product out of the table
}

// order is what is joined with the tables.
type order struct {
	Number  int
	Product string
	Pieces  int
}

// priced is an order with the price at the time of its batch, none if it has none.
type priced struct {
	order
	Price dstream.Option[int]
}

// named is an order with what both tables know.
type named = dstream.Joined[priced, dstream.Option[string]]

// event is what goes through the table of prices: a change, or else an order.
type event struct {
	change *change
	order  order
}

var errPrice = errors.New("the price is below 0")

// look is the function of the table of prices: a change sets one and gives nothing,
// an order is given with what the table has.
func look(_ time.Time, product string, v dstream.Option[event], price *dstream.State[int]) (_ dstream.Pair[string, priced], give bool, _ error) {
	e, _ := v.Get()
	switch {
	case e.change == nil:
		return dstream.KV(product, priced{e.order, price.Option()}), true, nil
	case e.change.Price < 0:
		return dstream.Pair[string, priced]{}, false, fmt.Errorf("%w: %d", errPrice, e.change.Price)
	case e.change.Price == 0:
		price.Remove()
	default:
		price.Update(e.change.Price)
	}
	return dstream.Pair[string, priced]{}, false, nil
}

// job gives done each order with its product's name and price.
func job(orders source.Source[order], changes source.Source[change], names []product, prices map[string]int, done func(b dstream.Batch, code string, o named) error) dstream.Job {
	return func(ssc *dstream.StreamingContext) error {
		set := dstream.MapPair(dstream.From(ssc, "changes", changes), func(c change) (string, event) {
			return c.Product, event{change: &c}
		})
		ask := dstream.MapPair(dstream.From(ssc, "orders", orders), func(o order) (string, event) {
			return o.Product, event{order: o}
		})
		events := dstream.Union(set, ask) // changes first
		withPrice := dstream.MapWithState(events, dstream.FunctionErr(look).
			Named("prices").InitialState(maps.All(prices)).NumPartitions(4))

		table := dstream.Constant(ssc, dstream.Parallelize(ssc, names))
		withName := dstream.LeftOuterJoin(withPrice, table, dstream.Name("names"), dstream.NumPartitions(4))
		dstream.Foreach(withName, func(_ context.Context, b dstream.Batch, o dstream.Pair[string, named]) error {
			return done(b, o.Key, o.Value)
		}, dstream.Name("priced orders"))
		return nil
	}
}
