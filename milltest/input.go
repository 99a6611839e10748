package milltest

// In is the scripted input of a source's name. Its methods belong to the test's
// goroutine; what they give is read by the next ticks.
type In[T any] struct {
	k     *Kit
	s     *script[T]
	parts int
}

// Input puts a scripted input in the place of the source of that name; T is the
// source's record type. It is called before the first tick. A name that the job
// does not have, or another type, is an error of the start.
func Input[T any](k *Kit, name string) *In[T] {
	k.t.Helper()
	k.mustNotRun("Input " + name)
	s := &script[T]{name: name}
	s.partition(0)
	k.durable.sources[name] = s
	k.h.ReplaceSource(name, s)
	k.pins.inputs = append(k.pins.inputs, s)
	return &In[T]{k: k, s: s, parts: 1}
}

// Partitions sets over how many source partitions the batches from now on are
// spread: partition i of n gets the records [i*len/n, (i+1)*len/n) of a batch.
// The default is 1, so that records keep their order. Partitions that have been
// used stay, empty, when the number is lowered.
func (in *In[T]) Partitions(n int) *In[T] {
	in.k.t.Helper()
	if n < 1 {
		in.k.t.Fatalf("milltest: Partitions(%d): an input has at least one", n)
	}
	in.parts = n
	return in
}

// Batch queues one batch: the next tick whose batch finds it at the head of the
// queue reads all of it, whatever the limits of the job. Without records it is
// an empty batch.
func (in *In[T]) Batch(records ...T) *In[T] {
	in.s.push(records, in.parts)
	return in
}

// Batches queues several batches.
func (in *In[T]) Batches(batches ...[]T) *In[T] {
	for _, b := range batches {
		in.Batch(b...)
	}
	return in
}

// Empty queues n empty batches.
func (in *In[T]) Empty(n int) *In[T] {
	for range n {
		in.Batch()
	}
	return in
}

// Repeat queues a batch that sends the newest n scripted records again, at new
// offsets, as a producer does that never got its acknowledgement.
func (in *In[T]) Repeat(n int) *In[T] {
	in.k.t.Helper()
	sent := in.s.sent
	if n > len(sent) {
		in.k.t.Fatalf("milltest: Repeat(%d): only %d records were sent", n, len(sent))
	}
	return in.Batch(append([]T(nil), sent[len(sent)-n:]...)...)
}

// Redeliver makes the read that begins with the next record of a partition send
// the n records before it once more, at their old offsets, as a source does
// that was set back. The engine must drop and count them.
func (in *In[T]) Redeliver(partition, n int) *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	p := in.s.partition(partition)
	p.rewind[p.end] = n
	return in
}

// Gap leaves n offsets of a partition without a record, as compaction and
// transaction markers do: the next record's offset is n greater.
func (in *In[T]) Gap(partition int, n int64) *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.partition(partition).end += n
	return in
}

// Backlog adds records to a partition that wait to be read as a Kafka topic's
// do: batches take of it by the limits of the job, once the scripted ones are
// used up. (A scripted batch takes what waits before it in its partitions.)
func (in *In[T]) Backlog(partition int, records ...T) *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.partition(partition)
	for _, v := range records {
		in.s.add(partition, v)
	}
	return in
}

// FailReads makes the next n reads of a range fail with err, each after it has
// given `after` records.
func (in *In[T]) FailReads(n, after int, err error) *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.reads = faults{n: n, after: after, err: err}
	return in
}

// FailPlans makes the next n plans fail with err.
func (in *In[T]) FailPlans(n int, err error) *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.plans = faults{n: n, err: err}
	return in
}

// Pending is the number of scripted batches that no tick has taken yet.
func (in *In[T]) Pending() int {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return in.s.batches
}

// End says that nothing more will come: a job with WithStopWhenDone ends after
// the batch that takes the last of the input.
func (in *In[T]) End() *In[T] {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	in.s.ended = true
	return in
}
