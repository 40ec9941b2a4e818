package timers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// OutboxConfig says what an Outbox empties. Client, DB and Dialect are needed.
type OutboxConfig struct {
	Client  *proxy.Client
	DB      *sql.DB
	Dialect Dialect
	// Interval is how often Run looks into the table; default 1 s.
	Interval time.Duration
	// Logger default: slog.Default().
	Logger *slog.Logger
}

// Outbox sends what transactions have left in the table carillon_timers (Tx). Any
// number of processes may run one.
//
// A row is deleted after an admin node has taken it. Where a process dies between
// the two it is sent again. The admin knows the row and sets no second timer, also after a
// cancellation in between, unless another timer of the key has ended since. One that
// the admin refuses for what it is, such as an input that does not fit, is set aside with the
// error: it stays in the table, and nobody waits for it. One that is refused for what
// may change (a handler that nobody has registered yet, a quota, a permission) is tried again,
// after a second at first and at last every ten minutes; the log says so once, and Retry has all
// tried now.
//
// Rows of one key are sent in the order in which they were written, those of several
// transactions in the order of their commits if each saw the other's. A timer that is cancelled
// before it was sent is not sent, and what was set aside of it is deleted; one that is moved
// before is set for the last instant, and of several moves only the last is sent. A cancellation is done when there is nothing to cancel,
// and frees the key also of a timer that has ended: cancel and set, in this order, to set a
// key anew that may have fired. A timer whose key is that of one which has ended is not set
// (Keep), and the log says so. A move is done when the run has begun; that of a timer that is
// not there is set aside.
//
// It needs MySQL 8.0, MariaDB 10.6 or PostgreSQL 9.5: a batch is locked while it is sent,
// and others pass it over. In SQLite, which would lock out all writers, it is marked instead:
// where a process dies, its batch is sent again after 45 seconds.
type Outbox struct {
	config OutboxConfig
	wake   chan struct{} // capacity 1: Nudge; nobody closes it
}

// NewOutbox checks config. It does not connect.
func NewOutbox(config OutboxConfig) (*Outbox, error) {
	if config.Client == nil || config.DB == nil || schema[config.Dialect] == nil {
		return nil, errors.New("outbox: Client, DB and a known Dialect are needed")
	}
	if config.Interval <= 0 {
		config.Interval = time.Second
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Outbox{config, make(chan struct{}, 1)}, nil
}

// Create makes the table where it is not there.
func (o *Outbox) Create(ctx context.Context) error {
	for _, statement := range schema[o.config.Dialect] {
		if _, err := o.config.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create carillon_timers: %w", err)
		}
	}
	return nil
}

// Nudge has Run look into the table at once, for example after a commit.
func (o *Outbox) Nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// maxPause is how long Run rests when nothing can be sent, or the database does
// not answer.
const maxPause = 30 * time.Second

// Run sends what comes until ctx ends, and returns its cause.
func (o *Outbox) Run(ctx context.Context) error {
	failures, said := 0, ""
	for {
		pause := o.config.Interval
		_, err := o.Drain(ctx)
		if err == nil || ctx.Err() != nil {
			failures, said = 0, ""
		} else {
			pause = min(pause<<min(failures, 10), maxPause)
			failures++
			if err.Error() != said {
				said = err.Error()
				o.config.Logger.WarnContext(ctx, "the outbox of timers cannot be sent now, trying again", "err", err)
			}
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		case <-o.wake:
			timer.Stop()
		}
	}
}

// Drain sends all that is to be sent now, and returns how many were taken.
func (o *Outbox) Drain(ctx context.Context) (sent int, err error) {
	for {
		more, taken, err := o.drainBatch(ctx)
		sent += taken
		if err != nil || !more {
			return sent, err
		}
	}
}

// SetAside is a row that the admin does not take.
type SetAside struct {
	ID                     int64 // of the row
	Executor, Handler, Key string
	Action                 string          // set, cancel or reschedule
	Request                json.RawMessage // as the API would take it
	CreatedAt              time.Time
	Err                    string
}

// SetAside lists the rows that were set aside, the oldest first, and at most limit.
func (o *Outbox) SetAside(ctx context.Context, limit int) ([]SetAside, error) {
	rows, err := o.config.DB.QueryContext(ctx, o.config.Dialect.query("SELECT id, executor, handler, timer_key, action, request, created_at, COALESCE(error, '') "+
		"FROM carillon_timers WHERE due_at IS NULL ORDER BY id LIMIT ?"), limit)
	if err != nil {
		return nil, fmt.Errorf("read carillon_timers: %w", err)
	}
	defer rows.Close()
	var out []SetAside
	for rows.Next() {
		var a SetAside
		var request string
		var created int64
		if err := rows.Scan(&a.ID, &a.Executor, &a.Handler, &a.Key, &a.Action, &request, &created, &a.Err); err != nil {
			return nil, fmt.Errorf("read carillon_timers: %w", err)
		}
		a.Request, a.CreatedAt = json.RawMessage(request), time.UnixMilli(created)
		out = append(out, a)
	}
	return out, rows.Err()
}

// Retry has all rows sent again that were set aside or refused, and returns their number.
func (o *Outbox) Retry(ctx context.Context) (int64, error) {
	done, err := o.config.DB.ExecContext(ctx, "UPDATE carillon_timers SET due_at = 0 WHERE due_at IS NULL OR due_at > 0 AND attempts > 0")
	if err != nil {
		return 0, fmt.Errorf("note in carillon_timers: %w", err)
	}
	return done.RowsAffected()
}
