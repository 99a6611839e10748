package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/kafka/internal/batch"
	"github.com/statemill/statemill/kafka/internal/wire"
	"github.com/statemill/statemill/source"
)

// Read implements source.Source.
func (s *kafkaSource) Read(ctx context.Context, r source.Range, emit func(offset int64, v Record) error) error {
	p, err := s.readable(ctx, r)
	if err != nil || r.From == r.Until {
		return s.without(ctx, p, r, err)
	}
	x := &reading{s: s, p: p, until: r.Until, end: r.Until, next: r.From, epoch: epochOf(r.Mark), emit: emit, d: s.decoders.Get()}
	defer s.release(x.d)
	for x.next < r.Until {
		if x.pass() {
			break
		}
		if err := x.step(ctx); err != nil {
			if x.records > 0 { // what came is of another topic, or of the one that is gone: all of it or nothing
				return s.inBatch(err)
			}
			return s.without(ctx, p, r, err)
		}
	}
	if err := s.proved(ctx, p, true); err != nil {
		return err
	}
	s.measured(p, x.records, x.bytes, r.Until-r.From, x.last, x.wire)
	if s.ahead != nil {
		s.ahead.want(p, r)
	}
	return nil
}

// without passes over a range of a topic that is gone, if that is wanted: an epoch
// that was planned before reads what is left of it, which is nothing.
func (s *kafkaSource) without(ctx context.Context, p *part, r source.Range, err error) error {
	var gone *TopicGoneError
	if p == nil || !s.cfg.onLoss || !errors.As(err, &gone) {
		return err
	}
	if r.From == r.Until {
		return nil
	}
	s.miss(err)
	s.loseTopic(p, r.From, r.Until)
	s.got(p)
	return s.proved(ctx, p, false)
}

// release gives a decoder to the next Read, without the buffers of this one.
func (s *kafkaSource) release(d *decoder) {
	d.batch.Reset(nil, 0, false, nil, int(s.cfg.maxBatchBytes))
	s.decoders.Put(d)
}

// readable checks that the range was planned.
func (s *kafkaSource) readable(ctx context.Context, r source.Range) (_ *part, err error) {
	p, open := s.part(r.Partition)
	if !open {
		return nil, fmt.Errorf("%v: %w", s, source.ErrNotOpen)
	}
	if err = ctx.Err(); err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) (*part, error) {
		return nil, &Error{Doing: "read", final: true,
			Err: &source.RangeError{Source: s.String(), Range: r, Why: fmt.Sprintf(format, args...)}}
	}
	if p == nil {
		return bad("there is no such partition")
	}
	if !p.is(r.Epoch) {
		return p, &Error{Doing: "read " + p.name, Err: madeAgain(p.Topic, r.Epoch, p.id, []source.Range{r}), final: true}
	}
	s.mu.Lock()
	planned := p.next
	s.mu.Unlock()
	if r.From < 0 || r.Until < r.From || r.Until > planned {
		return bad("it was planned up to %d", planned)
	}
	if r.From < r.Until {
		err = s.certain(ctx, p)
	}
	return p, err
}

// reading is one Read.
type reading struct {
	s     *kafkaSource
	p     *part
	next  int64 // offset to ask for
	until int64 // the range's end, or before it what is to be passed over
	end   int64 // the range's
	epoch int32 // the leader's when the range was planned, -1 if it is not known
	emit  func(offset int64, v Record) error
	d     *decoder

	ask     int      // bytes to ask for at least: a batch was cut
	empties *retrier // of answers in a row with nothing

	records, bytes int64
	last           float64 // bytes per record of the last fetch
	wire           float64 // bytes per offset as sent
}

// step is one fetch and what came with it.
func (x *reading) step(ctx context.Context) error {
	x.s.waits(x.p)
	a, kept := chunk{}, false
	bounded := len(x.s.cfg.passed[x.p.TopicPartition]) > 0
	if !bounded { // what is fetched ahead is not cut where it is passed over
		a, kept = x.s.ahead.take(ctx, x.p, x.next)
	}
	if kept {
		x.s.got(x.p)
	} else {
		answer, err := x.s.fetch(ctx, x.p, x.next, x.until, max(x.size(), x.ask))
		switch {
		case err == nil:
		case x.passOver(err):
			return nil
		default:
			return err
		}
		if len(answer.Batches) == 0 {
			return x.empty(ctx, answer)
		}
		a = chunk{from: x.next, batches: answer.Batches, aborted: answer.Aborted}
		x.s.moved(x.p, answer)
	}
	if err := x.sameLog(ctx, a.batches); err != nil {
		return err
	}
	before := x.next
	d := &x.d.batch
	data := a.batches
	if !kept {
		data = batch.Trim(data, x.until)
	}
	if bounded && x.until < x.end {
		if data = batch.Before(data, x.until); len(data) == 0 {
			x.next = x.until // a hole
			return nil
		}
	}
	d.Reset(data, x.next, !x.s.cfg.dirty, a.aborted, int(x.s.cfg.maxBatchBytes))
	if err := x.deliver(); err != nil {
		return err
	}
	records, bytes := d.Seen()
	x.records, x.bytes = x.records+records, x.bytes+bytes
	if records > 0 {
		x.last = float64(bytes) / float64(records)
	}
	if size, offsets := batch.Span(a.batches); x.wire == 0 && offsets > 0 {
		x.wire = float64(size) / float64(offsets)
	}
	if kept {
		x.s.ahead.giveBack(x.p, a, x.until)
	}
	if x.next > before {
		x.ask, x.empties = 0, nil
		return nil
	}
	return x.larger()
}

// sameLog looks for batches that were written after the range was planned: a leader that
// has lost what was there may have others in its place.
func (x *reading) sameLog(ctx context.Context, batches []byte) error {
	if x.epoch < 0 || batch.Leader(batches, x.end) <= x.epoch {
		return nil
	}
	err := x.s.confirm(ctx, []seen{{x.p, x.end, x.epoch, -1}})
	x.epoch = -1 // it has said yes
	return err
}

// size is how much to ask for: no more than what is left is likely to take.
func (x *reading) size() int {
	most := x.s.cfg.fetchMaxBytes
	wire := x.wire
	if wire == 0 {
		x.s.mu.Lock()
		wire = x.p.wire
		x.s.mu.Unlock()
	}
	if likely := wire * float64(x.until-x.next) * 1.125; wire > 0 && likely < float64(most) {
		return max(int(likely), min(most, 16<<10))
	}
	return most
}

// larger asks for more where an answer brought no offset forward: the next batch is larger
// than what was asked for.
func (x *reading) larger() error {
	need := x.d.batch.Need()
	if need == 0 {
		need = 2 * max(x.size(), x.ask)
	}
	if int64(need) > x.s.cfg.maxBatchBytes {
		return x.p.tooLarge(x.next, int64(need), x.s.cfg.maxBatchBytes)
	}
	if x.ask >= need {
		return x.p.recordError(&batch.Error{Base: x.next, Err: ErrCorrupt, Why: fmt.Sprintf("the broker cuts a batch of %d bytes", need)})
	}
	x.ask = need
	return nil
}

// errEmpty is an answer without a byte, from a log that goes on.
var errEmpty = errors.New("the broker's answer is empty")

// empty deals with an answer without a byte; fetch has seen that the log goes to until.
// What is left may be a hole, where compaction has removed all up to the end of the log. A
// broker that must bring the bytes from tiered storage answers the same when that takes too
// long, and no answer tells one from the other: so it is asked for as long as something
// that may pass is tried, and what is assumed then is told.
func (x *reading) empty(ctx context.Context, answer wire.FetchAnswer) error {
	if x.empties == nil {
		x.empties = x.s.cluster.retrier()
		x.empties.limit = max(x.s.cfg.retryFor, x.s.cfg.requestTimeout)
	}
	if !sabotage.On("two-empty-answers-are-a-hole") || x.empties.tries == 0 {
		if x.empties.again(ctx, errEmpty) {
			return nil
		}
	}
	if sabotage.On("wait-for-last-record") {
		x.empties = nil
		return ctx.Err()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x.s.moved(x.p, answer)
	x.s.hole(x.p, x.next, x.until, x.empties.limit)
	x.next, x.empties = x.until, nil
	return nil
}

// deliver decodes an answer and emits its records up to until.
func (x *reading) deliver() error {
	d := &x.d.batch
	out := Record{Topic: x.p.Topic, Partition: x.p.Partition}
	ms := int64(-1)
	for {
		more, err := d.Advance()
		if err != nil {
			return x.p.recordError(err)
		}
		if !more || d.At() >= x.until {
			break
		}
		// Set field by field: this is the inner loop, and records are large.
		out.Offset, out.Key, out.Value = d.At(), d.Key(), d.Value()
		if t := d.Time(); t != ms { // many records have the time of the one before
			ms, out.Time = t, unixMilli(t)
		}
		out.Headers = nil
		if d.NumHeaders() > 0 {
			r := d.Record()
			out.Headers = x.d.headers.of(&r)
		}
		if err := x.emit(out.Offset, out); err != nil {
			return err
		}
	}
	x.next = d.Offset()
	return nil
}

// recordError says where a batch lies that cannot be decoded.
func (p *part) recordError(err error) error {
	var b *batch.Error
	if errors.As(err, &b) {
		return &RecordError{Topic: p.Topic, Partition: p.Partition, Offset: b.Base, Err: err}
	}
	return err
}

func (p *part) tooLarge(offset, size, limit int64) error {
	return &RecordError{Topic: p.Topic, Partition: p.Partition, Offset: offset,
		Err: fmt.Errorf("%w: it takes %d bytes, the limit is %d: raise MaxBatchBytes", ErrTooLarge, size, limit)}
}
