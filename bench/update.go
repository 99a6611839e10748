package main

import (
	"time"

	"github.com/statemill/statemill/staterdd"
)

// updateBatches is the number of batches in a run of the update path.
const updateBatches = 5

// An updater is the update path alone: hash → slot → function with State → emit, on one partition. Each batch is a
// version, and the version before stays readable while it is built. The outputs of a batch are kept until the next one.
type updater struct {
	part *staterdd.Partition[string, int64, int64, output]
	at   staterdd.Batch
	last staterdd.Record[string, int64, output]
}

// newUpdater makes the state and grows it by one full pass.
func newUpdater(d *data) (*updater, error) {
	op, err := staterdd.NewOperator(staterdd.Function(add).Named("sums").NumPartitions(1), staterdd.Options{Slide: interval})
	if err != nil {
		return nil, err
	}
	part, err := op.NewPartition()
	if err != nil {
		return nil, err
	}
	u := &updater{part: part, at: staterdd.Batch{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	for _, in := range d.all().chunks(d.perBatch) {
		if err := u.batch(in); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *updater) batch(in records) error {
	u.part.Recycle(u.last)
	u.at.Epoch++
	u.at.Time = u.at.Time.Add(interval)
	if err := u.part.Begin(u.at); err != nil {
		return err
	}
	if err := u.part.Update(in.keys, in.values); err != nil {
		return err
	}
	if err := u.part.Expire(); err != nil {
		return err
	}
	u.last = u.part.Seal()
	return nil
}

// measureUpdate compares the update path with a bare map.
func measureUpdate(keys int) func(o options) (sample, error) {
	return func(o options) (sample, error) {
		d := newData(o, keys, batchSize)
		base := newBareMap(d)
		ours, err := newUpdater(d)
		if err != nil {
			return sample{}, err
		}
		return interleave(o, d, updateBatches, ours, base)
	}
}
