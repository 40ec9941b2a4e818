package gormstore

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type logChunkRow struct {
	tenantID, executionID, attempt, firstLine, lastLine, lineCount int64
	body                                                           string
}

var logChunkTable = table[logChunkRow]{
	name: "log_chunks", keys: 4, required: 7,
	columns: []column[logChunkRow]{
		intColumn("tenant_id", func(r *logChunkRow) *int64 { return &r.tenantID }),
		intColumn("execution_id", func(r *logChunkRow) *int64 { return &r.executionID }),
		intColumn("attempt", func(r *logChunkRow) *int64 { return &r.attempt }),
		intColumn("first_line", func(r *logChunkRow) *int64 { return &r.firstLine }),
		intColumn("last_line", func(r *logChunkRow) *int64 { return &r.lastLine }),
		intColumn("line_count", func(r *logChunkRow) *int64 { return &r.lineCount }),
		longColumn("body", kindBytes, func(r *logChunkRow) *string { return &r.body }),
	},
}

// storedLine is a log line inside a chunk's body (JSON, then DEFLATE).
type storedLine struct {
	Number  int64           `json:"n"`
	At      int64           `json:"t"` // Unix milliseconds
	Level   int             `json:"l,omitempty"`
	Message string          `json:"m"`
	Attrs   json.RawMessage `json:"a,omitempty"`
}

func encodeLines(lines []domain.LogLine) (string, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return "", err
	}
	encoder := json.NewEncoder(w)
	for _, l := range lines {
		s := storedLine{Number: l.Number, At: millis(l.At), Level: l.Level, Message: l.Message}
		if json.Valid(l.Attrs) {
			s.Attrs = l.Attrs
		}
		if err := encoder.Encode(s); err != nil {
			return "", fmt.Errorf("encode log lines: %w", err)
		}
	}
	err = w.Close() // before reading: it flushes
	return b.String(), err
}

func decodeLines(body []byte, attempt int) (lines []domain.LogLine, err error) {
	r := flate.NewReader(bytes.NewReader(body))
	defer r.Close()
	decoder := json.NewDecoder(r)
	for {
		var s storedLine
		if err := decoder.Decode(&s); err == io.EOF {
			return lines, nil
		} else if err != nil {
			return nil, fmt.Errorf("read log chunk: %w", err)
		}
		lines = append(lines, domain.LogLine{
			Number: s.Number, Attempt: attempt, At: instant(s.At), Level: s.Level, Message: s.Message, Attrs: s.Attrs,
		})
	}
}

// attemptKey names the log of one attempt.
type attemptKey struct {
	execution domain.ExecutionID
	attempt   int
}

// AppendLogChunks stores the part of each chunk that lies behind the last line
// stored for its attempt: a resend may be cut differently from the first try.
func (s *Store) AppendLogChunks(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, chunks []domain.LogChunk) (dropped int, err error) {
	if len(chunks) == 0 {
		return 0, nil
	}
	for try := 1; ; try++ {
		err = s.runRepeatable(ctx, "append log", func(t *txn) (err error) {
			dropped, err = t.appendLog(tenant, executor, chunks)
			return err
		})
		// The same lines on two connections at once: the second try sees them.
		if !domain.Is(err, domain.CodeConflict) || try == txTries {
			return dropped, err
		}
	}
}

func (t *txn) appendLog(tenant domain.TenantID, executor domain.ExecutorID, chunks []domain.LogChunk) (dropped int, err error) {
	ids := make([]domain.ExecutionID, len(chunks))
	for i, c := range chunks {
		ids[i] = c.ExecutionID
	}
	known, err := t.s.flights.load(t.ctx, t.q, ids)
	if err != nil {
		return 0, err
	}
	var own []domain.LogChunk
	for _, c := range chunks {
		if f, ok := known[c.ExecutionID]; ok && f.ref.tenant == tenant && f.ref.executor == executor {
			own = append(own, c)
		} else {
			dropped++
		}
	}
	last, err := t.lastLines(tenant, own)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(own, func(a, b domain.LogChunk) int { return int(a.FirstLine - b.FirstLine) })
	var rows []*logChunkRow
	for _, c := range own {
		key := attemptKey{c.ExecutionID, c.Attempt}
		fresh := slices.DeleteFunc(slices.Clone(c.Lines), func(l domain.LogLine) bool { return l.Number <= last[key] })
		if len(fresh) == 0 {
			continue
		}
		body, err := encodeLines(fresh)
		if err != nil {
			return 0, err
		}
		last[key] = fresh[len(fresh)-1].Number
		rows = append(rows, &logChunkRow{
			tenantID: int64(tenant), executionID: int64(c.ExecutionID), attempt: int64(c.Attempt),
			firstLine: fresh[0].Number, lastLine: last[key], lineCount: int64(len(fresh)), body: body,
		})
	}
	return dropped, logChunkTable.insert(t, rows)
}

func (t *txn) lastLines(tenant domain.TenantID, chunks []domain.LogChunk) (map[attemptKey]int64, error) {
	out := map[attemptKey]int64{}
	var terms []string
	for _, c := range chunks {
		key := attemptKey{c.ExecutionID, c.Attempt}
		if _, ok := out[key]; ok {
			continue
		}
		out[key] = 0
		terms = append(terms, t.d.bounded(fmt.Sprintf(
			"SELECT execution_id, attempt, last_line FROM log_chunks WHERE tenant_id = %d AND execution_id = %d AND attempt = %d ORDER BY first_line DESC LIMIT 1",
			tenant, c.ExecutionID, c.Attempt)))
	}
	for part := range slices.Chunk(terms, 200) {
		err := query(t.ctx, t.q, func(rows *sql.Rows) error {
			var key attemptKey
			var line int64
			err := rows.Scan(&key.execution, &key.attempt, &line)
			out[key] = line
			return err
		}, strings.Join(part, " UNION ALL "))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReadLog reads chunks until the page is full. Limit 0 means 1000.
func (s *Store) ReadLog(ctx context.Context, p store.ReadLogParams) (page store.LogPage, err error) {
	limit := p.Limit
	if limit <= 0 {
		limit = 1000
	}
	err = s.look(ctx, "read log", func(ctx context.Context, q querier, _ *gorm.DB) error {
		page = store.LogPage{}
		key := []any{int64(p.Tenant), int64(p.Execution), int64(p.Attempt)}
		const where = " FROM log_chunks WHERE tenant_id = ? AND execution_id = ? AND attempt = ?"
		err := query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&page.LastLine) },
			"SELECT last_line"+where+" ORDER BY first_line DESC LIMIT 1", key...)
		if err != nil || page.LastLine <= p.After {
			return err
		}
		rows, err := q.QueryContext(ctx, "SELECT body"+where+" AND last_line > ? ORDER BY first_line", append(key, p.After)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() && len(page.Lines) < limit {
			var body sql.RawBytes
			if err := rows.Scan(&body); err != nil {
				return err
			}
			lines, err := decodeLines(body, p.Attempt)
			if err != nil {
				return err
			}
			for _, l := range lines {
				if l.Number > p.After && len(page.Lines) < limit {
					page.Lines = append(page.Lines, l)
				}
			}
		}
		return rows.Err()
	})
	return page, err
}
