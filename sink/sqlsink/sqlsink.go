package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// Unit is a database as a [sink.Unit]: all outputs of a job to it share one, and
// become visible in one transaction. It uses the *sql.DB and leaves it open. Its
// methods are called as sink.Unit says.
type Unit struct {
	name    string
	db      *sql.DB
	dialect Dialect
	cfg     config
	hold    sink.Hold

	// Of the run that has fenced last.
	fence      *sink.Fence
	generation int // of fences
	open       *transaction
}

var _ sink.Unit = (*Unit)(nil)

// New makes a unit with a name that is its own in the job, the same one in every
// run. Nothing is asked of the database before Fence.
func New(name string, db *sql.DB, d Dialect, opts ...Option) *Unit {
	u := &Unit{name: name, db: db, dialect: d, cfg: config{table: DefaultTable, idle: DefaultIdleTimeout}}
	fault := func(text string) { u.cfg.faults = append(u.cfg.faults, errors.New(text)) }
	for _, o := range opts {
		if o == nil {
			fault("an option is nil")
			continue
		}
		o(&u.cfg)
	}
	if name == "" || len(name) > 100 {
		fault("the unit's name must have 1 to 100 bytes")
	}
	if db == nil {
		fault("the *sql.DB is nil")
	}
	if d != SQLite && d != PostgreSQL {
		fault("the dialect is not known: SQLite or PostgreSQL")
	}
	return u
}

// Name implements sink.Unit.
func (u *Unit) Name() string { return u.name }

// wrap names the unit and what it was doing.
func (u *Unit) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sink %s: %s: %w", u.name, doing, err)
}

// Validate implements sink.Validator.
func (u *Unit) Validate() error {
	if err := u.cfg.valid(); err != nil {
		return &permanentError{u.wrap("options", err)}
	}
	return nil
}

// Fence implements sink.Unit: the row's fence is raised to the run's term, unless it
// is above; the memory is not touched (CE10).
func (u *Unit) Fence(ctx context.Context, f sink.Fence) error {
	if err := u.Validate(); err != nil {
		return err
	}
	if f.Term == 0 || f.Term > math.MaxInt64 || f.Root == "" {
		return u.wrap("fence", fmt.Errorf("root %q, term %d: %w", f.Root, f.Term, sink.ErrMisuse))
	}
	if err := u.hold.Take(u.name, f); err != nil {
		return err
	}
	u.fence, u.open = nil, nil
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := u.table(ctx); err != nil {
		return u.wrap("make the table "+u.cfg.table, err)
	}
	fresh, err := changed(u.db.ExecContext(ctx, u.sql("INSERT INTO %s (root, unit, fence, run, epoch, term, output, digest) "+
		"VALUES (?, ?, 0, '', 0, 0, '', '') ON CONFLICT (root, unit) DO NOTHING"), f.Root, u.name))
	if err != nil {
		return u.wrap("fence", err)
	}
	statement := "UPDATE %s SET fence = ?, run = ? WHERE root = ? AND unit = ? AND (fence < ? OR fence = ? AND run = ?)"
	if sabotage.On("sql-fence-takes-term") { // CE10
		statement = "UPDATE %s SET fence = ?, run = ?, term = fence WHERE root = ? AND unit = ? AND (fence < ? OR fence = ? AND run = ?)"
	}
	term := int64(f.Term)
	n, err := changed(u.db.ExecContext(ctx, u.sql(statement), term, f.Run, f.Root, u.name, term, term, f.Run))
	if err != nil {
		return u.wrap("fence", err)
	}
	if n != 1 {
		r, err := u.row(ctx, u.db, f.Root)
		if err == nil {
			err = &sink.NotOwnerError{Unit: u.name, Term: f.Term, Newer: r.fence}
		}
		return u.wrap("fence", err)
	}
	u.fence = &f
	u.generation++
	if fresh == 1 && f.Notice != nil {
		u.tell(ctx, f)
	}
	return nil
}

// tell tells the user whose rows are there already. It is no reason to fail.
func (u *Unit) tell(ctx context.Context, f sink.Fence) {
	var others int64
	err := u.db.QueryRowContext(ctx, u.sql("SELECT COUNT(*) FROM %s WHERE unit = ? AND root <> ? AND epoch > 0"), u.name, f.Root).Scan(&others)
	if err == nil && others > 0 {
		f.Notice(fmt.Sprintf("the checkpoint root is new here and starts anew; other roots that have written: %d", others))
	}
}

// table makes the table if it is not there. A user who may not make tables can have
// it made before.
func (u *Unit) table(ctx context.Context) error {
	look := func() error {
		rows, err := u.db.QueryContext(ctx, u.sql("SELECT epoch FROM %s WHERE 1 = 0"))
		if err != nil {
			return err
		}
		return errors.Join(rows.Err(), rows.Close())
	}
	if look() == nil {
		return nil
	}
	_, err := u.db.ExecContext(ctx, create(u.dialect.quoted(u.cfg.table)))
	if err != nil && look() == nil {
		return nil // another run was making it at the same time
	}
	return err
}

func (u *Unit) sql(statement string) string {
	return u.dialect.own(fmt.Sprintf(statement, u.dialect.quoted(u.cfg.table)))
}

func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// row is the unit's row of a root.
type row struct {
	fence uint64
	run   string
	mem   sink.Memory
}

// owned fails if a newer run has fenced, or a copy of the root with the same term.
func (r *row) owned(u *Unit) error {
	if r.fence > u.fence.Term || r.fence == u.fence.Term && r.run != u.fence.Run {
		return &sink.NotOwnerError{Unit: u.name, Term: u.fence.Term, Newer: r.fence}
	}
	return nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (u *Unit) row(ctx context.Context, q queryer, root string) (*row, error) {
	var r row
	var fence, epoch, term int64
	var output, digest string
	err := q.QueryRowContext(ctx, u.sql("SELECT fence, run, epoch, term, output, digest FROM %s WHERE root = ? AND unit = ?"), root, u.name).
		Scan(&fence, &r.run, &epoch, &term, &output, &digest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &permanentError{fmt.Errorf("table %s has lost the row of root %q and unit %q: who deletes there?", u.cfg.table, root, u.name)}
	}
	if err != nil {
		return nil, err
	}
	r.fence = uint64(fence)
	if epoch == 0 {
		return &r, nil
	}
	r.mem.Epoch, r.mem.Term = uint64(epoch), uint64(term)
	if err := errors.Join(r.mem.Output.UnmarshalText([]byte(output)), r.mem.Digest.UnmarshalText([]byte(digest))); err != nil || epoch < 0 {
		return nil, &permanentError{fmt.Errorf("table %s, root %q, unit %q: epoch %d, output %q, digest %q are no memory: who else writes there?",
			u.cfg.table, root, u.name, epoch, output, digest)}
	}
	return &r, nil
}

// Memory implements sink.Unit.
func (u *Unit) Memory(ctx context.Context) (sink.Memory, bool, error) {
	if u.fence == nil {
		return sink.Memory{}, false, u.wrap("memory before fence", sink.ErrMisuse)
	}
	if ctx.Err() != nil {
		return sink.Memory{}, false, context.Cause(ctx)
	}
	r, err := u.row(ctx, u.db, u.fence.Root)
	if err == nil {
		err = r.owned(u)
	}
	if err != nil {
		return sink.Memory{}, false, u.wrap("read the memory", err)
	}
	return r.mem, r.mem.Epoch > 0, nil
}

// Begin implements sink.Unit.
func (u *Unit) Begin(ctx context.Context, epoch uint64) (sink.Tx, error) {
	switch {
	case u.fence == nil:
		return nil, u.wrap("begin before fence", sink.ErrMisuse)
	case u.open != nil:
		return nil, u.wrap(fmt.Sprintf("begin epoch %d while epoch %d is open", epoch, u.open.epoch), sink.ErrMisuse)
	case epoch == 0 || epoch > math.MaxInt64:
		return nil, u.wrap(fmt.Sprintf("begin epoch %d", epoch), sink.ErrMisuse)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	u.open = &transaction{u: u, epoch: epoch, generation: u.generation}
	return u.open, nil
}

// Close implements sink.Unit. The database stays open.
func (u *Unit) Close() error {
	u.fence, u.open = nil, nil
	u.hold.Release()
	return nil
}

// permanentError does not go away by trying again.
type permanentError struct{ err error }

// Error gives the cause's text.
func (e *permanentError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *permanentError) Unwrap() error { return e.err }

// Permanent says so.
func (e *permanentError) Permanent() bool { return true }
