package rdd

// Pair is a keyed record.
type Pair[K, V any] struct {
	Key   K
	Value V
}

// KV makes a Pair.
func KV[K, V any](k K, v V) Pair[K, V] { return Pair[K, V]{k, v} }

// Option is a value that may be absent. The zero value is absent.
type Option[T any] struct {
	value T
	ok    bool
}

// Some is an Option that holds v.
func Some[T any](v T) Option[T] { return Option[T]{v, true} }

// None is the absent Option.
func None[T any]() Option[T] { return Option[T]{} }

// Get returns the value and whether there is one.
func (o Option[T]) Get() (T, bool) { return o.value, o.ok }

// IsSome says whether there is a value.
func (o Option[T]) IsSome() bool { return o.ok }

// OrElse returns the value, or d if there is none.
func (o Option[T]) OrElse(d T) T {
	if o.ok {
		return o.value
	}
	return d
}
