package db

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// outboxBytes ends a page of the outbox with the row that reaches it.
const outboxBytes = 4 << 20

// Append writes rows of a topic of the outbox in the transaction. Without a reader of the
// topic it writes none. A body has less than 16 MiB; callers bound their lists.
func (t *Tx) Append(topic domain.Topic, bodies ...[]byte) error {
	if len(bodies) == 0 || !t.DB.Reads(topic) {
		return nil
	}
	args := make([]any, 0, 2*len(bodies))
	for _, body := range bodies {
		id, err := t.DB.NewID()
		if err != nil {
			return err
		}
		args = append(args, id, body)
	}
	value := fmt.Sprintf("(%d, ?, ?)", topic)
	_, err := t.Exec(t.Ctx, "INSERT INTO outbox (topic, id, body) VALUES "+value+strings.Repeat(", "+value, len(bodies)-1), args...)
	if err != nil {
		return fmt.Errorf("write the outbox, %s: %w", topic, err)
	}
	return nil
}

// Reads reports whether a topic of the outbox has a reader.
func (s *DB) Reads(topic domain.Topic) bool { return s.Unread&topic == 0 }

// ReadOutbox hands out rows of a topic after an id, the oldest first, up to limit and a
// number of bytes. It returns the id of the last one; 0: there is none. each must not use
// the connection.
func ReadOutbox(ctx context.Context, q Querier, d Dialect, topic domain.Topic, after int64, limit int, each func(id int64, body []byte) error) (last int64, err error) {
	total := 0
	rows, err := q.QueryContext(ctx, fmt.Sprintf("SELECT id, body FROM outbox%s WHERE topic = %d AND id > %d ORDER BY id LIMIT %d", d.ByPrimary(), topic, after, limit))
	if err != nil {
		return 0, fmt.Errorf("read the outbox, %s: %w", topic, err)
	}
	defer func() { _ = rows.Close() }()
	for total < outboxBytes && rows.Next() {
		var id int64
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return 0, err
		}
		if err := each(id, body); err != nil {
			return 0, fmt.Errorf("outbox, %s, row %d: %w", topic, id, err)
		}
		last, total = id, total+len(body)
	}
	return last, rows.Err()
}

// DeleteOutbox deletes rows of a topic.
func (t *Tx) DeleteOutbox(topic domain.Topic, ids []int64) error {
	for len(ids) > 0 {
		n := min(len(ids), ListOnce)
		_, err := t.Exec(t.Ctx, fmt.Sprintf("DELETE FROM outbox WHERE topic = %d AND id IN (%s)", topic, IDList(ids[:n])))
		if err != nil {
			return fmt.Errorf("delete from the outbox, %s: %w", topic, err)
		}
		ids = ids[n:]
	}
	return nil
}

// OldestOutbox is an expression of SQL for the time at which the oldest row of a topic was
// written, in Unix milliseconds by the clock of a node. Without a row it is far in the future.
func OldestOutbox(topic domain.Topic) string {
	epoch := domain.IDTime(0)
	shift := bits.TrailingZeros64(uint64(domain.IDFloor(epoch.Add(time.Millisecond))))
	return fmt.Sprintf("((SELECT COALESCE(MIN(id), %d) FROM outbox WHERE topic = %d) >> %d) + %d", int64(math.MaxInt64), topic, shift, Millis(epoch))
}

// OutboxDepths looks at all topics. It counts at most most rows of each.
func (s *DB) OutboxDepths(ctx context.Context, most int) (map[domain.Topic]domain.OutboxDepth, error) {
	out := map[domain.Topic]domain.OutboxDepth{}
	err := s.LookRows(ctx, "look at the outbox", func(rows *sql.Rows) error {
		var now, n, first int64
		var topic domain.Topic
		if err := rows.Scan(&now, &topic, &n, &first); err != nil {
			return err
		}
		depth := domain.OutboxDepth{Rows: int(n)}
		if n > 0 {
			depth.Age = max(0, Instant(now).Sub(domain.IDTime(first)))
		}
		out[topic] = depth
		return nil
	}, OutboxDepthQuery(s.Dialect, most))
	return out, err
}

// OutboxDepthQuery is the statement of OutboxDepths. It goes by the ids, which say when a
// row was written.
func OutboxDepthQuery(d Dialect, most int) string {
	parts := domain.Collect(domain.Topics, func(topic *domain.Topic) string {
		return fmt.Sprintf("SELECT %s, %d, COUNT(*), COALESCE(MIN(id), 0) FROM (SELECT id FROM outbox%s WHERE topic = %[2]d ORDER BY id LIMIT %[4]d) AS oldest%[2]d",
			d.ClockNow(), *topic, d.ByPrimary(), most)
	})
	return strings.Join(parts, " UNION ALL ")
}
