package rdd

// WithOrigin is r whose records are said to be of another stream than the one they were read
// from: the origin of each is its place in its partition, counted from 0, with no name of
// the partition. It is for rows that are read back elsewhere from where they were stored,
// without their origins, so that what depends on these is the same in both places.
func WithOrigin[T any](r *RDD[T], stream string) *RDD[T] {
	if r == nil || r.err != nil {
		return r
	}
	c := *r
	c.compute = func(t *Task, p int, emit func(T) error) error {
		next := int64(0)
		return r.compute(t, p, func(v T) error {
			t.Origin = Origin{Stream: stream, Offset: next}
			next++
			return emit(v)
		})
	}
	return &c
}
