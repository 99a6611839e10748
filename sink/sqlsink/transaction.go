package sqlsink

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
)

// transaction is an epoch's rows until they are committed; the database hears of it
// then.
type transaction struct {
	u          *Unit
	epoch      uint64
	generation int

	mu    sync.Mutex // of parts, which several goroutines add to
	parts []rows
}

// rows are one part's, each with its length before it.
type rows struct {
	sink.Part
	data []byte
}

// Write implements sink.Tx.
func (t *transaction) Write(ctx context.Context, p sink.Part, in sink.Rows) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	part := rows{Part: p}
	err := in(func(row []byte) error {
		part.data = binary.AppendUvarint(part.data, uint64(len(row)))
		part.data = append(part.data, row...)
		return nil
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.ContainsFunc(t.parts, func(o rows) bool { return o.Part == p }) {
		return fmt.Errorf("%w: the part is written twice", sink.ErrMisuse)
	}
	t.parts = append(t.parts, part)
	return nil
}

// Commit implements sink.Tx: all of it in one transaction of the database, which is
// begun anew each time that Commit is called.
func (t *transaction) Commit(ctx context.Context, m sink.Memory) error {
	u := t.u
	switch {
	case t.generation != u.generation:
		return fmt.Errorf("sink %s: epoch %d: %w: the sink was fenced after the transaction began", u.name, t.epoch, sink.ErrFenced)
	case u.open != t || m.Epoch != t.epoch:
		return fmt.Errorf("sink %s: epoch %d is not open: %w", u.name, m.Epoch, sink.ErrMisuse)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	slices.SortFunc(t.parts, func(a, b rows) int {
		return cmp.Or(cmp.Compare(a.Output, b.Output), cmp.Compare(a.Index, b.Index))
	})
	if err := t.commit(ctx, m); err != nil {
		if u.dialect.permanent(err) {
			err = &permanentError{err}
		}
		return err
	}
	u.open = nil
	return nil
}

func (t *transaction) commit(ctx context.Context, m sink.Memory) error {
	u := t.u
	conn, err := u.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // after Commit it does nothing
	if limit := u.dialect.limit(u.cfg.idle); limit != "" {
		if _, err := tx.ExecContext(ctx, limit); err != nil {
			return fmt.Errorf("limit the transaction: %w", err)
		}
	}
	done, err := t.remember(ctx, tx, m)
	if err != nil || done {
		return err
	}
	for _, p := range t.parts {
		if len(p.data) == 0 {
			continue
		}
		if err := p.exec(ctx, tx); err != nil {
			return fmt.Errorf("output %s: partition %d: %w", p.Output, p.Index, err)
		}
	}
	if err := tx.Commit(); err != nil {
		// SQLite leaves a transaction open that could not be committed, and
		// database/sql would give its connection to others.
		if !sabotage.On("sql-commit-left-open") {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
			defer cancel()
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
		return fmt.Errorf("end the transaction: %w", err)
	}
	return nil
}

// rollbackTimeout bounds the clean-up after a commit that failed.
const rollbackTimeout = 5 * time.Second

// remember moves the memory, first of all: it takes the row's lock, so that a fence
// comes either before, and is seen, or waits. done says that an earlier try, whose
// answer was lost, has committed all.
func (t *transaction) remember(ctx context.Context, tx *sql.Tx, m sink.Memory) (done bool, err error) {
	u := t.u
	where := " WHERE root = ? AND unit = ? AND epoch < ? AND (fence < ? OR fence = ? AND run = ?)"
	args := []any{int64(m.Epoch), int64(m.Term), m.Output.String(), m.Digest.String(), u.fence.Root, u.name, int64(m.Epoch),
		int64(u.fence.Term), int64(u.fence.Term), u.fence.Run}
	if sabotage.On("sql-fence-unchecked") { // CE1
		where, args = " WHERE root = ? AND unit = ? AND epoch < ?", args[:7]
	}
	n, err := changed(tx.ExecContext(ctx, u.sql("UPDATE %s SET epoch = ?, term = ?, output = ?, digest = ?"+where), args...))
	if err != nil {
		return false, fmt.Errorf("move the memory: %w", err)
	}
	if n == 1 {
		return false, nil
	}
	r, err := u.row(ctx, tx, u.fence.Root)
	if err != nil {
		return false, fmt.Errorf("move the memory: %w", err)
	}
	if err := r.owned(u); err != nil {
		return false, err
	}
	if r.mem == m && !sabotage.On("sql-lost-answer-fails") {
		return true, nil
	}
	return false, &sink.EpochError{Unit: u.name, Epoch: m.Epoch, Have: r.mem.Epoch}
}

// exec runs the statement of a part for each of its rows.
func (p *rows) exec(ctx context.Context, tx *sql.Tx) error {
	statement, err := tx.PrepareContext(ctx, p.Target)
	if err != nil {
		return fmt.Errorf("prepare %q: %w", p.Target, err)
	}
	defer statement.Close()
	for b, i := p.data, 0; len(b) > 0; i++ {
		size, n := binary.Uvarint(b)
		row := b[n : n+int(size)]
		b = b[n+int(size):]
		args, err := argsOf(row)
		if err != nil {
			return &permanentError{fmt.Errorf("row %d: %w", i, err)}
		}
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return fmt.Errorf("row %d: %q: %w", i, p.Target, err)
		}
	}
	return nil
}

// Abort implements sink.Tx.
func (t *transaction) Abort(context.Context) error {
	if t.u.open == t {
		t.u.open = nil
	}
	return nil
}
