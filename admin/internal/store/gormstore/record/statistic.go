package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// endsFormat begins a body of domain.TopicEnds. endsWithErrors begins one with an end that has an
// error; the version before cannot read such a body.
const (
	endsFormat     = 1
	endsWithErrors = 2
)

// endUndone is added to the state of an end that is taken back, and endError to that of an end
// with an error.
const endUndone, endError = 0x80, 0x40

// EncodeEnds writes the body of a row of domain.TopicEnds: 10 to 20 bytes each, as most differ
// little from the one before in their order. An error adds its fingerprint and the id of its run.
// The text of a fingerprint is written once in a body.
func EncodeEnds(ends []domain.RunEnd) []byte {
	slices.SortFunc(ends, func(a, b domain.RunEnd) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Executor, b.Executor), cmp.Compare(a.Job, b.Job))
	})
	out := append(make([]byte, 0, 1+20*len(ends)), endsFormat)
	var last domain.RunEnd
	var written map[domain.Fingerprint]bool
	for i := range ends {
		e := &ends[i]
		out = binary.AppendVarint(out, int64(e.Tenant-last.Tenant))
		out = binary.AppendVarint(out, int64(e.Executor-last.Executor))
		out = binary.AppendVarint(out, int64(e.Job-last.Job))
		out = binary.AppendVarint(out, e.Minute-last.Minute)
		state := byte(e.State)
		if e.Undone {
			state |= endUndone
		}
		if e.Error != 0 {
			state |= endError
		}
		out = append(out, state)
		out = binary.AppendUvarint(out, uint64(e.Late+1))
		out = binary.AppendUvarint(out, uint64(e.Took+1))
		if e.Error != 0 {
			if written == nil {
				written, out[0] = map[domain.Fingerprint]bool{}, endsWithErrors
			}
			out = appendError(out, e, written)
		}
		last = *e
	}
	return out
}

func appendError(out []byte, e *domain.RunEnd, written map[domain.Fingerprint]bool) []byte {
	out = binary.BigEndian.AppendUint64(out, uint64(e.Error))
	out = binary.AppendUvarint(out, uint64(e.Run))
	text := e.ErrorText[:min(len(e.ErrorText), domain.ErrorTextSize)]
	if written[e.Error] {
		text = ""
	}
	written[e.Error] = true
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// endReader reads a body of EncodeEnds. cut: it has ended too early.
type endReader struct {
	rest  []byte
	cut   bool
	texts map[domain.Fingerprint]string
}

func (r *endReader) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.took(n)
	return v
}

func (r *endReader) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.took(n)
	return v
}

func (r *endReader) took(n int) {
	r.cut = r.cut || n <= 0
	r.rest = r.rest[max(n, 0):]
}

// bytes are the next n; none when there are fewer.
func (r *endReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.cut, r.rest = true, nil
		return make([]byte, min(n, 8))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *endReader) end(e *domain.RunEnd) {
	e.Tenant += domain.TenantID(r.signed())
	e.Executor += domain.ExecutorID(r.signed())
	e.Job += domain.JobID(r.signed())
	e.Minute += r.signed()
	state := r.bytes(1)[0]
	e.State, e.Undone = domain.State(state&^(endUndone|endError)), state&endUndone != 0
	e.Late, e.Took = int64(r.unsigned())-1, int64(r.unsigned())-1
	e.Run, e.Error, e.ErrorText = 0, 0, ""
	if state&endError == 0 {
		return
	}
	e.Error = domain.Fingerprint(binary.BigEndian.Uint64(r.bytes(8)))
	e.Run = domain.ExecutionID(r.unsigned())
	if text := r.bytes(r.unsigned()); len(text) > 0 && !r.cut {
		if r.texts == nil {
			r.texts = map[domain.Fingerprint]string{}
		}
		r.texts[e.Error] = string(text)
	}
	e.ErrorText = r.texts[e.Error]
}

// DecodeEnds reads what EncodeEnds wrote.
func DecodeEnds(b []byte) (ends []domain.RunEnd, err error) {
	if len(b) == 0 || b[0] != endsFormat && b[0] != endsWithErrors {
		return nil, fmt.Errorf("ends of runs in an unknown format")
	}
	r := endReader{rest: b[1:]}
	var e domain.RunEnd
	for len(r.rest) > 0 {
		if r.end(&e); r.cut {
			return nil, fmt.Errorf("ends of runs are cut off")
		}
		ends = append(ends, e)
	}
	return ends, nil
}

// StatisticRow is a row of statistics.
type StatisticRow struct {
	Tenant  domain.TenantID
	Kind    domain.StatisticKind
	Subject int64
	At      int64
	Step    domain.StatisticStep
	State   domain.State
}

// StatisticColumns are those of the key, and then what StatisticTargets fills.
const StatisticColumns = "tenant_id, kind, subject_id, at, step, state, runs, started, late_ms, max_late_ms, late, ran, ran_ms, max_ran_ms, took"

// ScanStatistic reads a row of StatisticColumns.
func ScanStatistic(scan func(...any) error, key *StatisticRow, sum *domain.RunSum) error {
	var late, took []byte
	err := scan(&key.Tenant, &key.Kind, &key.Subject, &key.At, &key.Step, &key.State,
		&sum.Runs, &sum.Late.N, &sum.Late.SumMS, &sum.Late.MaxMS, &late, &sum.Took.N, &sum.Took.SumMS, &sum.Took.MaxMS, &took)
	if err == nil {
		err = sum.Late.Decode(late)
	}
	if err == nil {
		err = sum.Took.Decode(took)
	}
	return err
}

// Compare orders rows as their table does.
func (r StatisticRow) Compare(o StatisticRow) int {
	return cmp.Or(cmp.Compare(r.Tenant, o.Tenant), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Subject, o.Subject),
		cmp.Compare(r.At, o.At), cmp.Compare(r.Step, o.Step), cmp.Compare(r.State, o.State))
}

// Where is the condition that finds the row.
func (r StatisticRow) Where() string {
	return fmt.Sprintf("(tenant_id = %d AND kind = %d AND subject_id = %d AND at = %d AND step = %d AND state = %d)", r.Tenant, r.Kind, r.Subject, r.At, r.Step, r.State)
}

// WhereOf finds the rows that differ from this one in their subject alone, of a list.
func (r StatisticRow) WhereOf(subjects []int64) string {
	return fmt.Sprintf("WHERE tenant_id = %d AND kind = %d AND subject_id IN (%s) AND at = %d AND step = %d AND state = %d", r.Tenant, r.Kind, db.IDList(subjects), r.At, r.Step, r.State)
}

// Widen is the row that the runs of this one belong to with another step.
func (r StatisticRow) Widen(to domain.StatisticStep) StatisticRow {
	r.At -= r.At % to.Length().Milliseconds()
	r.Step = to
	return r
}

// Counted are the rows that an end is counted in.
func Counted(e *domain.RunEnd) [3]StatisticRow {
	row := func(kind domain.StatisticKind, subject int64) StatisticRow {
		return StatisticRow{e.Tenant, kind, subject, e.Minute * time.Minute.Milliseconds(), domain.StepMinute, e.State}
	}
	return [3]StatisticRow{
		row(domain.StatisticsOfTenant, 0), row(domain.StatisticsOfExecutor, int64(e.Executor)), row(domain.StatisticsOfJob, int64(e.Job)),
	}
}

// endsInRow bounds the ends of one row of the outbox.
const endsInRow = 1000

// InsertEnds notes ends of runs, in the transaction that ended them.
func InsertEnds(t *db.Tx, ends []domain.RunEnd) error {
	if !t.DB.Reads(domain.TopicEnds) {
		return nil
	}
	var bodies [][]byte
	for part := range slices.Chunk(ends, endsInRow) {
		bodies = append(bodies, EncodeEnds(part))
	}
	return t.Append(domain.TopicEnds, bodies...)
}

// InsertEndsOf is InsertEnds for rows that were inserted; undone: that are deleted.
func InsertEndsOf(t *db.Tx, rows []*ExecutionRow, undone bool) error {
	var ends []domain.RunEnd
	for _, r := range rows {
		ends = appendEnd(ends, r, undone)
	}
	return InsertEnds(t, ends)
}

// InsertEndsByHour is InsertEndsOf for imported rows. They count in the first minute of their hour:
// a week by minutes was 45,000 rows of statistics, and counting them held the only writer of
// SQLite for longer than leases last.
func InsertEndsByHour(t *db.Tx, rows []*ExecutionRow) error {
	const hour = int64(time.Hour / time.Minute)
	var ends []domain.RunEnd
	for _, r := range rows {
		ends = appendEnd(ends, r, false)
	}
	for i := range ends {
		ends[i].Minute -= ends[i].Minute % hour
	}
	return InsertEnds(t, ends)
}

// InsertEndsBy is InsertEnds for rows that have changed.
func InsertEndsBy(t *db.Tx, changes []db.Change[ExecutionRow]) error {
	var ends []domain.RunEnd
	for _, c := range changes {
		had := len(ends)
		ends = appendEnd(ends, c.After, false)
		before := appendEnd(nil, c.Before, true)
		if len(before) == 0 {
			continue
		}
		if before[0].Undone = false; len(ends) > had && ends[had] == before[0] {
			ends = ends[:had] // it is counted already
			continue
		}
		before[0].Undone = true
		ends = append(ends, before[0])
	}
	return InsertEnds(t, ends)
}

func appendEnd(ends []domain.RunEnd, r *ExecutionRow, undone bool) []domain.RunEnd {
	if !domain.State(r.State).Terminal() || r.ParentID != 0 {
		return ends // most: nothing of them has to be mapped
	}
	e := domain.Execution{
		ID: domain.ExecutionID(r.ID), ErrorKind: r.errorKind, Error: r.error, Message: r.message,
		TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), JobID: domain.JobID(r.JobID), State: domain.State(r.State),
		Reason: domain.Reason(r.reason), Attempt: int(r.Attempt), FireAt: db.Instant(r.FireAt), PlannedAt: db.Instant(r.PlannedAt),
		StartedAt: db.Instant(r.startedAt), FinishedAt: db.Instant(r.finishedAt),
		Cause: domain.Cause(r.Cause), NotBefore: db.Instant(r.notBefore), Delays: delaysOf(r.delays),
		Took: time.Duration(r.took) * time.Microsecond,
	}
	if end, ok := domain.EndOf(&e); ok {
		end.Undone = undone
		ends = append(ends, end)
	}
	return ends
}
