package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// TimerRow is a row of timers.
type TimerRow struct {
	ID, TenantID, JobID, Part, FireAt int64
	Key                               string
	input                             string
	inputSize                         int64 // of an input that was not read (TimerHeads)
	maxAttempts, timeout, StartWithin int64
	Labels                            int64
	note, requestedBy, traceparent    string
	RequestID                         string
}

var TimerTable = db.Table[TimerRow]{
	Name: "timers", Keys: 1, Required: 6,
	Columns: func() []db.Column[TimerRow] {
		type r = TimerRow
		rare := func(c db.Column[r]) db.Column[r] { c.Nullable = true; return c }
		return []db.Column[r]{
			db.IntColumn("id", func(r *r) *int64 { return &r.ID }),
			db.IntColumn("tenant_id", func(r *r) *int64 { return &r.TenantID }),
			db.IntColumn("job_id", func(r *r) *int64 { return &r.JobID }),
			db.IntColumn("part", func(r *r) *int64 { return &r.Part }),
			db.IntColumn("fire_at", func(r *r) *int64 { return &r.FireAt }),
			db.TextColumn("timer_key", domain.MaxTimerKey, func(r *r) *string { return &r.Key }),
			db.LongColumn("input", db.KindBytes, func(r *r) *string { return &r.input }),
			rare(db.IntColumn("max_attempts", func(r *r) *int64 { return &r.maxAttempts })),
			rare(db.IntColumn("timeout_ms", func(r *r) *int64 { return &r.timeout })),
			rare(db.IntColumn("start_within_ms", func(r *r) *int64 { return &r.StartWithin })),
			rare(db.IntColumn("labels", func(r *r) *int64 { return &r.Labels })),
			rare(db.TextColumn("note", MessageSize, func(r *r) *string { return &r.note })),
			rare(db.TextColumn("requested_by", NameSize, func(r *r) *string { return &r.requestedBy })),
			rare(db.TextColumn("traceparent", traceSize, func(r *r) *string { return &r.traceparent })),
			rare(db.TextColumn("request_id", domain.MaxTimerRequest, func(r *r) *string { return &r.RequestID })),
		}
	}(),
}

var TimerColumns = TimerTable.List("")

// TimerHeads is TimerColumns without the inputs. Their sizes stand first.
var TimerHeads = "COALESCE(OCTET_LENGTH(input), 0), " + TimerTable.ListBut("", map[string]string{"input": "''"})

// HeadTargets are where the columns of TimerHeads belong.
func (r *TimerRow) HeadTargets() []any { return TimerTable.Targets(r, &r.inputSize) }

// InputLeft is how many bytes the input has that is stored and was not read.
func (r *TimerRow) InputLeft() int64 { return r.inputSize }

// ToTimerRow maps to the stored shape.
func ToTimerRow(t *domain.Timer) *TimerRow {
	return &TimerRow{
		ID: int64(t.ID), TenantID: int64(t.TenantID), JobID: int64(t.JobID), Part: int64(t.Partition), FireAt: db.Millis(t.FireAt),
		Key: t.Key, input: string(t.Input), maxAttempts: int64(t.MaxAttempts), timeout: t.Timeout.Milliseconds(),
		StartWithin: t.StartWithin.Milliseconds(), Labels: int64(len(t.Labels)), note: Clip(t.Note, MessageSize),
		requestedBy: Clip(t.RequestedBy, NameSize), traceparent: string(t.Trace), RequestID: t.RequestID,
	}
}

// TimerBytes is TimerRow.Bytes in SQL.
const TimerBytes = "COALESCE(OCTET_LENGTH(input), 0) + 128 * (1 + COALESCE(labels, 0))"

// Bytes is what the row counts in the tenant's stored bytes.
func (r *TimerRow) Bytes() int64 {
	return int64(len(r.input)) + r.inputSize + domain.StoredRow*(1+r.Labels)
}

// Timer is what the row means, without its labels.
func (r *TimerRow) Timer() domain.Timer {
	return domain.Timer{
		ID: domain.TimerID(r.ID), TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Partition: int(r.Part),
		FireAt: db.Instant(r.FireAt), Key: r.Key, Input: blob(r.input), MaxAttempts: int(r.maxAttempts),
		Timeout: time.Duration(r.timeout) * time.Millisecond, StartWithin: time.Duration(r.StartWithin) * time.Millisecond,
		Note: r.note, RequestedBy: r.requestedBy, Trace: domain.Trace(r.traceparent), RequestID: r.RequestID,
	}
}

// TimerName is what names a timer: its job and its key.
type TimerName struct {
	Job int64
	Key string
}

// Name is what no other pending timer has.
func (r *TimerRow) Name() TimerName { return TimerName{r.JobID, r.Key} }

// InsertLabels writes the labels of timers.
func InsertLabels(t *db.Tx, timers []domain.Timer) error {
	var rows []*labelRow
	for i := range timers {
		for _, label := range timers[i].Labels {
			rows = append(rows, &labelRow{int64(timers[i].TenantID), int64(timers[i].JobID), label, int64(timers[i].ID)})
		}
	}
	if err := labelTable.Insert(t, rows); err != nil {
		return fmt.Errorf("insert labels: %w", err)
	}
	return nil
}

type labelRow struct {
	tenantID, jobID int64
	label           string
	timerID         int64
}

var labelTable = db.Table[labelRow]{
	Name: "timer_labels", Keys: 4, Required: 4,
	Columns: []db.Column[labelRow]{
		db.IntColumn("tenant_id", func(r *labelRow) *int64 { return &r.tenantID }),
		db.IntColumn("job_id", func(r *labelRow) *int64 { return &r.jobID }),
		db.TextColumn("label", domain.MaxTimerLabel, func(r *labelRow) *string { return &r.label }),
		db.IntColumn("timer_id", func(r *labelRow) *int64 { return &r.timerID }),
	},
}

// MoveLabels gives the labels of timers to their runs.
func MoveLabels(t *db.Tx, to map[int64]int64) error {
	if len(to) == 0 {
		return nil
	}
	timers := slices.Sorted(maps.Keys(to))
	var cases strings.Builder
	for _, id := range timers {
		fmt.Fprintf(&cases, " WHEN %d THEN %d", id, to[id])
	}
	_, err := t.Exec(t.Ctx, "UPDATE timer_labels SET timer_id = CASE timer_id"+cases.String()+" END WHERE timer_id IN ("+db.IDList(timers)+")")
	if err != nil {
		return fmt.Errorf("move labels: %w", err)
	}
	return nil
}

// NameRuns makes the keys of timers lead to their runs. requests are the names of the
// requests that have set them, by run. Some runs have none.
func NameRuns(t *db.Tx, runs []*ExecutionRow, requests map[int64]string) error {
	values := make([]string, 0, len(runs))
	args := make([]any, 0, len(runs))
	for _, r := range runs {
		_, key, ok := domain.SplitTimerOccurrence(r.OccurrenceKey)
		if !ok {
			return fmt.Errorf("run %d is none of a timer", r.ID)
		}
		var request any
		if id := requests[r.ID]; id != "" {
			request = id
		}
		values = append(values, fmt.Sprintf("(%d, %d, ?, %d, ?)", r.TenantID, r.JobID, r.ID))
		args = append(args, domain.TimerRequestKey(key), request)
	}
	if len(values) == 0 {
		return nil
	}
	_, err := t.Exec(t.Ctx, "INSERT INTO request_keys (tenant_id, job_id, request_key, execution_id, request_id) VALUES "+strings.Join(values, ", ")+
		t.Dialect.OnDuplicate("tenant_id, job_id, request_key")+" execution_id = "+t.Dialect.Inserted("execution_id")+", request_id = "+t.Dialect.Inserted("request_id"), args...)
	if err != nil {
		return fmt.Errorf("write keys of timers: %w", err)
	}
	return nil
}
