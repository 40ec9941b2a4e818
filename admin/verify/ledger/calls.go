package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
)

// callsOf writes a job's revisions and events as calls, in order. Each took
// effect at the instant that its transaction noted; nil when there is no event.
//
// Of a job with more events than are kept the first ones are missing: until the
// first that is left nobody knows whether it was paused.
func callsOf(j *store.LedgerJob) []verify.Call {
	if len(j.Events) == 0 || len(j.Revisions) == 0 {
		return nil
	}
	tenant, id := j.TenantID.String(), j.ID.String()
	first := j.Revisions[0]
	create := verify.Call{
		Op: verify.OpCreate, Tenant: tenant, Job: id, Revision: first.Revision, Spec: specOf(&first.Spec),
		Invoke: verify.At(first.CreatedAt), Ack: verify.At(j.Events[0].At), Paused: j.Events[0].State == domain.JobPaused,
	}
	create.Ack = max(create.Ack, create.Invoke)
	calls := []verify.Call{create}
	if j.Events[0].State == domain.JobDeleted {
		calls = append(calls, at(create, verify.OpDelete, j.Events[0].At))
	}
	for i := range j.Revisions[1:] {
		r := &j.Revisions[i+1]
		edit := at(create, verify.OpEdit, r.CreatedAt)
		edit.Revision, edit.Spec = r.Revision, specOf(&r.Spec)
		calls = append(calls, edit)
	}
	for i, e := range j.Events[1:] {
		if e.State == j.Events[i].State {
			continue // only the note was changed
		}
		op := verify.OpResume
		switch e.State {
		case domain.JobPaused:
			op = verify.OpPause
		case domain.JobDeleted:
			op = verify.OpDelete
		}
		calls = append(calls, at(create, op, e.At))
	}
	slices.SortStableFunc(calls, func(a, b verify.Call) int { return cmp.Compare(a.Invoke, b.Invoke) })
	return calls
}

// at is another call of the same job.
func at(create verify.Call, op verify.Op, when time.Time) verify.Call {
	return verify.Call{Op: op, Tenant: create.Tenant, Job: create.Job, Invoke: verify.At(when), Ack: verify.At(when)}
}

// specOf turns a job's revision into the checker's words.
func specOf(s *domain.JobSpec) *verify.Spec {
	spec := &verify.Spec{
		Kind: string(s.Schedule.Kind), Expr: s.Schedule.Expr, Dialect: s.Schedule.Dialect, Every: verify.Span(s.Schedule.Every),
		Anchor: verify.At(s.Schedule.Anchor), At: verify.At(s.Schedule.At),
		WindowFrom: s.Schedule.WindowFrom, WindowTo: s.Schedule.WindowTo, Zone: s.Schedule.Zone,
		StartAt: verify.At(s.Schedule.StartAt), EndAt: verify.At(s.Schedule.EndAt), Gap: s.Schedule.Gap, Overlap: s.Schedule.Overlap,
		JitterMax: verify.Span(s.Schedule.JitterMax), Blocking: string(s.Blocking), Parallelism: s.Parallelism,
		Misfire: string(s.Misfire.Policy), Threshold: verify.Span(s.Misfire.Threshold),
	}
	for _, t := range s.Schedule.Instants {
		spec.Instants = append(spec.Instants, verify.At(t))
	}
	return spec
}
