package timers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// outboxBatch is how many rows are taken at once, and maxTaken how many others of
	// their keys.
	outboxBatch = 500
	maxTaken    = 2_000
	// sendTime bounds how long the rows of a batch are locked.
	sendTime = 30 * time.Second
	// marked is how long others leave what SQLite has marked: longer than a request of
	// the batch may be on its way.
	marked = sendTime + landTime
	// finishTime bounds what is written down after the caller has gone.
	finishTime = 5 * time.Second
	// retryFirst and retryMost are after how long a row is sent again that was
	// refused for what may change; held, when others send what stands before it.
	retryFirst = time.Second
	retryMost  = 10 * time.Minute
	held       = time.Second
)

// drainBatch takes rows, sends them, and notes what was answered, also when the rest
// was not. more: there may be others that can be sent at once.
func (o *Outbox) drainBatch(ctx context.Context) (more bool, taken int, err error) {
	var options *sql.TxOptions
	if o.config.Dialect != SQLite { // with repeatable read, MySQL would lock the gaps too, and inserts would wait
		options = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	tx, err := o.config.DB.BeginTx(ctx, options)
	if err != nil {
		return false, 0, fmt.Errorf("read carillon_timers: %w", err)
	}
	defer rollback(tx)
	now := time.Now()
	taking, err := o.take(ctx, tx, now)
	if err != nil || taking.seen == 0 {
		return false, 0, err
	}
	if o.config.Dialect == SQLite {
		if err := tx.Commit(); err != nil {
			return false, 0, fmt.Errorf("mark in carillon_timers: %w", err)
		}
	}
	failed := o.send(ctx, taking.chains, now)
	more = taking.seen == outboxBatch || slices.ContainsFunc(taking.chains, func(c *chain) bool { return c.more })
	if o.config.Dialect == SQLite {
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
		defer cancel()
		ctx = later
		if tx, err = o.config.DB.BeginTx(ctx, nil); err != nil {
			return more, 0, errors.Join(failed, fmt.Errorf("delete from carillon_timers: %w", err))
		}
		defer rollback(tx)
	}
	taken, err = o.finish(ctx, tx, taking)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return more, 0, errors.Join(failed, fmt.Errorf("delete from carillon_timers: %w", err))
	}
	return more, taken, failed
}

// rollback ends a transaction that was not committed.
func rollback(tx *sql.Tx) { _ = tx.Rollback() }

// taking is what a transaction has locked.
type taking struct {
	seen   int // how many were due
	rows   map[int64]*row
	chains []*chain // in the order of their first due rows
	byName map[chainName]*chain
}

// columns are those of a row that is taken. SQLite takes a text for a number, which
// must not keep other rows from being read.
func (o *Outbox) columns() string {
	attempts := "attempts"
	if o.config.Dialect == SQLite {
		attempts = "CAST(attempts AS INTEGER)"
	}
	return "SELECT id, executor, handler, timer_key, action, request, " + attempts + ", due_at, created_at FROM carillon_timers"
}

// take locks the next rows, and the first others of their keys that nobody else sends.
func (o *Outbox) take(ctx context.Context, tx *sql.Tx, now time.Time) (*taking, error) {
	lock := " FOR UPDATE SKIP LOCKED"
	if o.config.Dialect == SQLite {
		// A transaction that begins with a read may not write later.
		lock = ""
		if err := o.exec(ctx, tx, "DELETE FROM carillon_timers WHERE id < 0"); err != nil {
			return nil, err
		}
	}
	t, ms := &taking{rows: map[int64]*row{}, byName: map[chainName]*chain{}}, now.UnixMilli()
	add := func(rows *sql.Rows) error {
		r := &row{keys: Keys{client: o.config.Client}}
		if err := rows.Scan(&r.id, &r.keys.executor, &r.keys.handler, &r.key, &r.action, &r.text, &r.attempts, &r.due, &r.created); err != nil || t.rows[r.id] != nil {
			return err
		}
		r.due = max(r.due, 0)
		name := chainName{r.keys, r.key}
		c := t.byName[name]
		if c == nil {
			c = &chain{}
			t.byName[name], t.chains = c, append(t.chains, c)
		}
		t.rows[r.id], c.rows = r, append(c.rows, r)
		return nil
	}
	err := o.query(ctx, tx, add, o.columns()+o.byIndex("carillon_timers_due")+" WHERE due_at BETWEEN ? AND ? ORDER BY due_at, id LIMIT ?"+lock, -ms, ms, outboxBatch)
	if t.seen = len(t.rows); err != nil || t.seen == 0 {
		return t, err
	}
	keys := make([]any, len(t.chains))
	for i, c := range t.chains {
		keys[i] = c.rows[0].key
	}
	of := o.byIndex("carillon_timers_key") + " WHERE timer_key IN " + marks(len(keys))
	err = o.query(ctx, tx, add, o.columns()+of+" AND due_at >= ? ORDER BY id LIMIT ?"+lock, append(slices.Clone(keys), -ms, maxTaken)...)
	if err != nil {
		return nil, err
	}
	if err := o.lookAround(ctx, tx, t, of, keys); err != nil || o.config.Dialect != SQLite {
		return t, err
	}
	var ids []any
	for id := range t.rows {
		ids = append(ids, id)
	}
	for part := range slices.Chunk(ids, outboxBatch) {
		if err := o.exec(ctx, tx, "UPDATE carillon_timers SET due_at = ? WHERE id IN "+marks(len(part)), append([]any{-now.Add(marked).UnixMilli()}, part...)...); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// lookAround finds what is in the table of the keys besides: rows that others have, and
// those that were set aside. It sees them without a lock, and after the locks: whoever wrote
// a row when he had seen another one has committed later. Of a key that has more rows than
// are taken at once it also finds the instant that the last of its moves asks for.
func (o *Outbox) lookAround(ctx context.Context, tx *sql.Tx, t *taking, of string, keys []any) error {
	full := len(t.rows) >= maxTaken
	err := o.query(ctx, tx, func(rows *sql.Rows) error {
		var id int64
		var action string
		var isAside bool
		name := chainName{keys: Keys{client: o.config.Client}}
		if err := rows.Scan(&id, &name.keys.executor, &name.keys.handler, &name.key, &action, &isAside); err != nil {
			return err
		}
		switch c := t.byName[name]; {
		case c == nil || t.rows[id] != nil:
		case isAside:
			c.aside = append(c.aside, id)
		default:
			if c.foreign == 0 || id < c.foreign {
				c.foreign = id
			}
			if full {
				c.goesOn(id, action)
			} else {
				c.moves = c.moves || action == rescheduleAction
			}
		}
		return nil
	}, "SELECT id, executor, handler, timer_key, action, due_at IS NULL FROM carillon_timers"+of+" ORDER BY id", keys...)
	if err != nil {
		return err
	}
	return o.readLast(ctx, tx, t)
}

// readLast reads the instants of the last moves that are not taken.
func (o *Outbox) readLast(ctx context.Context, tx *sql.Tx, t *taking) error {
	of := map[int64]*chain{}
	var ids []any
	for _, c := range t.chains {
		if c.lastMove != 0 {
			of[c.lastMove], ids = c, append(ids, c.lastMove)
		}
	}
	for part := range slices.Chunk(ids, outboxBatch) {
		err := o.query(ctx, tx, func(rows *sql.Rows) error {
			var id int64
			var text string
			if err := rows.Scan(&id, &text); err != nil {
				return err
			}
			of[id].last = movedTo(text)
			return nil
		}, "SELECT id, request FROM carillon_timers WHERE id IN "+marks(len(part)), part...)
		if err != nil {
			return err
		}
	}
	return nil
}

// byIndex has MySQL use an index where it would read a small table from end to end,
// and lock all of it.
func (o *Outbox) byIndex(name string) string {
	if o.config.Dialect == MySQL {
		return " FORCE INDEX (" + name + ")"
	}
	return ""
}

func (o *Outbox) query(ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := tx.QueryContext(ctx, o.config.Dialect.query(text), args...)
	if err != nil {
		return fmt.Errorf("read carillon_timers: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read carillon_timers: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read carillon_timers: %w", err)
	}
	return nil
}

func (o *Outbox) exec(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	if _, err := tx.ExecContext(ctx, o.config.Dialect.query(text), args...); err != nil {
		return fmt.Errorf("write to carillon_timers: %w", err)
	}
	return nil
}

// finish writes down what became of the rows, and returns how many were taken.
func (o *Outbox) finish(ctx context.Context, tx *sql.Tx, t *taking) (taken int, err error) {
	var gone []any
	refused, first := 0, error(nil)
	for _, c := range t.chains {
		for _, r := range c.rows {
			switch {
			case r.answer.Outcome != "":
				taken++
				gone = append(gone, r.id)
			case r.removed:
				gone = append(gone, r.id)
			case r.answer.Err != nil:
				if !r.next.IsZero() && r.attempts == 0 {
					refused, first = refused+1, cmp.Or(first, r.answer.Err)
				}
				err = o.note(ctx, tx, r)
			case !r.next.IsZero():
				err = o.putOff(ctx, tx, r.id, r.next.UnixMilli())
			case o.config.Dialect == SQLite: // it was marked
				err = o.putOff(ctx, tx, r.id, r.due)
			}
			if err != nil {
				return 0, err
			}
		}
		if c.end != nil && c.end.answer.Outcome != "" {
			for _, id := range c.aside {
				if id < c.end.id {
					gone = append(gone, id)
				}
			}
		}
	}
	if refused > 0 {
		o.config.Logger.WarnContext(ctx, "rows of the outbox of timers are refused, and tried again", "rows", refused, "err", first)
	}
	return taken, o.remove(ctx, tx, gone)
}

func (o *Outbox) putOff(ctx context.Context, tx *sql.Tx, id, due int64) error {
	return o.exec(ctx, tx, "UPDATE carillon_timers SET due_at = ? WHERE id = ?", due, id)
}

// note writes down what was said of a row that was not taken.
func (o *Outbox) note(ctx context.Context, tx *sql.Tx, r *row) error {
	var due *int64
	if !r.next.IsZero() {
		at := r.next.UnixMilli()
		due = &at
	} else {
		o.config.Logger.ErrorContext(ctx, "a row of the outbox of timers was set aside", "row", r.id, "action", r.action, "err", r.answer.Err)
	}
	return o.exec(ctx, tx, "UPDATE carillon_timers SET due_at = ?, attempts = attempts + 1, error = ? WHERE id = ?", due, clip(r.answer.Err.Error()), r.id)
}

// clip bounds a text, for a column.
func clip(text string) string {
	const most = 4000
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), most)], "\x00", ""), "")
}

func (o *Outbox) remove(ctx context.Context, tx *sql.Tx, ids []any) error {
	if o.config.Dialect == MySQL {
		return removeEach(ctx, tx, ids)
	}
	for part := range slices.Chunk(ids, outboxBatch) {
		if err := o.exec(ctx, tx, "DELETE FROM carillon_timers WHERE id IN "+marks(len(part)), part...); err != nil {
			return err
		}
	}
	return nil
}

// removeEach is for MySQL: for several ids at once it reads a small table from end to
// end, and waits for the rows that others send; MariaDB does so whatever index is forced.
func removeEach(ctx context.Context, tx *sql.Tx, ids []any) error {
	one, err := tx.PrepareContext(ctx, "DELETE FROM carillon_timers WHERE id = ?")
	if err != nil {
		return fmt.Errorf("write to carillon_timers: %w", err)
	}
	defer func() { _ = one.Close() }()
	for _, id := range ids {
		if _, err := one.ExecContext(ctx, id); err != nil {
			return fmt.Errorf("write to carillon_timers: %w", err)
		}
	}
	return nil
}
