package codec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/statemill/statemill/internal/sabotage"
)

// ErrMigration is the class of faults in a set of migrations. They are found
// before any value is read.
var ErrMigration = errors.New("migrations do not fit together")

// A Migration turns stored values of an old type into values of a newer one. It
// is made by [Migrate] or [MigrateWith], and used by [Reader].
type Migration struct {
	from   Schema
	in     reflect.Type
	out    reflect.Type
	decode func(src []byte) (any, error)
	step   func(any) (any, error)
	err    error
}

// Migrate returns the migration from values that [For] has stored for From. The
// program keeps the old type for as long as values of it may be stored; its
// name may change, its fields may not. f must not keep or change its argument
// elsewhere, and must give the same result for the same value. Faults of From
// are reported by [Reader].
func Migrate[From, To any](f func(From) (To, error)) Migration {
	c, err := For[From]()
	if err != nil {
		return Migration{err: err}
	}
	return MigrateWith(c, f)
}

// MigrateWith is [Migrate] from values that were stored by the codec c.
func MigrateWith[From, To any](c Codec[From], f func(From) (To, error)) Migration {
	m := Migration{in: reflect.TypeFor[From](), out: reflect.TypeFor[To]()}
	if f == nil {
		m.err = fmt.Errorf("codec: %w: the function from %s to %s is nil", ErrMigration, m.in, m.out)
		return m
	}
	c, m.from, m.err = Use(c)
	m.decode = func(src []byte) (any, error) { return c.Decode(src) }
	m.step = func(v any) (any, error) {
		from, _ := v.(From) // only a nil interface fails, and is the zero value
		return f(from)
	}
	return m
}

// From returns the schema of the values that the migration reads.
func (m Migration) From() Schema { return m.from }

// route returns the migrations that lead from values stored as old to the type
// now, in order. It is empty if the type now reads old itself.
func route(old, current Schema, now reflect.Type, steps []Migration) ([]Migration, error) {
	if err := checkSteps(current, now, steps); err != nil {
		return nil, err
	}
	if old.Fingerprint() == current.Fingerprint() {
		return nil, nil
	}
	next := map[reflect.Type]Migration{}
	var start *Migration
	for i, m := range steps {
		next[m.in] = m
		if m.from.Fingerprint() == old.Fingerprint() {
			start = &steps[i]
		}
	}
	changes := Compare(old, current)
	if start == nil && ClassOf(changes) != Incompatible {
		return nil, nil
	}
	for i, m := range steps {
		if start != nil || ClassOf(Compare(old, m.from)) == Incompatible {
			continue
		}
		for _, o := range steps[i+1:] {
			if ClassOf(Compare(old, o.from)) != Incompatible {
				return nil, fmt.Errorf("codec: %w: stored values (%s) could be read as %s and as %s; add a migration from exactly them",
					ErrMigration, old, m.in, o.in)
			}
		}
		start = &steps[i]
	}
	if start == nil {
		return nil, &SchemaError{Old: old, New: current, Changes: changes}
	}
	path := []Migration{*start}
	if sabotage.On("migrate-direct") {
		return nil, nil
	}
	for at := start.out; at != now; at = next[at].out { // checkSteps: ends at now
		path = append(path, next[at])
	}
	return path, nil
}

// checkSteps proves that every migration leads to the type now, whatever is
// stored, so that a wrong set is seen on the first start with it.
func checkSteps(current Schema, now reflect.Type, steps []Migration) error {
	next := map[reflect.Type]reflect.Type{}
	stored := map[string]reflect.Type{current.Fingerprint(): now}
	for i, m := range steps {
		switch {
		case m.err != nil:
			return m.err
		case m.in == nil:
			return fmt.Errorf("codec: %w: number %d is empty; make it by Migrate", ErrMigration, i+1)
		case m.in == now:
			return fmt.Errorf("codec: %w: one leads away from %s, the type of the program", ErrMigration, now)
		case next[m.in] != nil:
			return fmt.Errorf("codec: %w: from %s one leads to %s and one to %s", ErrMigration, m.in, next[m.in], m.out)
		case stored[m.from.Fingerprint()] != nil:
			return fmt.Errorf("codec: %w: %s and %s are stored alike (%s), so stored values do not tell which they are; give one another field name",
				ErrMigration, stored[m.from.Fingerprint()], m.in, m.from)
		}
		next[m.in] = m.out
		stored[m.from.Fingerprint()] = m.in
	}
	for _, m := range steps {
		at := m.out
		for n := 0; at != now; n++ {
			to, ok := next[at]
			if !ok {
				return fmt.Errorf("codec: %w: from %s they end at %s, not at %s; add one from there", ErrMigration, m.in, at, now)
			}
			if n > len(steps) {
				return fmt.Errorf("codec: %w: from %s they go round in a cycle", ErrMigration, m.in)
			}
			at = to
		}
	}
	return nil
}
