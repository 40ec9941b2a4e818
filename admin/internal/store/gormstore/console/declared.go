package console

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// declaredTimeout bounds a transaction of WriteDeclared without a deadline of its caller. A
// catalogue may declare thousands of jobs.
const declaredTimeout = time.Minute

func (s *Catalogue) WriteDeclared(ctx context.Context, tenant domain.TenantID, writes []store.DeclaredWrite) error {
	if len(writes) == 0 {
		return nil
	}
	if _, set := ctx.Deadline(); !set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, declaredTimeout)
		defer cancel()
	}
	return s.RunAt(ctx, "write declared jobs", func(t *db.Tx, now time.Time) error {
		if err := lockDeclared(t, tenant, writes); err != nil {
			return err
		}
		var sum growth
		if err := s.writeDeclared(t, tenant, now, writes, &sum); err != nil {
			return err
		}
		return sum.check(t, tenant)
	})
}

// lockDeclared locks in the order of all transactions: triggers by id, executors, the
// tenant. The lock of the tenant keeps the counts of jobs and fires true until the commit.
func lockDeclared(t *db.Tx, tenant domain.TenantID, writes []store.DeclaredWrite) error {
	jobs, executors, grows := map[domain.JobID]bool{}, map[domain.ExecutorID]bool{}, false
	for _, w := range writes {
		switch {
		case w.Create != nil:
			executors[w.Create.Executor] = true
		case w.State != nil:
			jobs[w.State.ID] = true
		case w.Update != nil:
			jobs[w.Update.ID] = true
		case w.Mark != nil:
			jobs[w.Mark.Job] = true
		}
		grows = grows || w.Mark == nil
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(jobs)), createOnce) {
		args := []any{int64(tenant)}
		for _, id := range some {
			args = append(args, int64(id))
		}
		_, err := db.SelectColumn[int64](t.Ctx, t.Conn, "SELECT job_id FROM triggers WHERE tenant_id = ? AND job_id IN (?"+strings.Repeat(", ?", len(some)-1)+")"+
			" ORDER BY job_id"+t.Dialect.ForUpdate(), args...)
		if err != nil {
			return fmt.Errorf("lock triggers: %w", err)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(executors)) {
		if _, err := record.ExecutorName(t, tenant, e); err != nil {
			return err
		}
	}
	if !grows {
		return nil
	}
	_, err := record.TenantExists(t, tenant, t.Dialect.ForUpdate())
	return err
}

func (s *Catalogue) writeDeclared(t *db.Tx, tenant domain.TenantID, now time.Time, writes []store.DeclaredWrite, sum *growth) error {
	var created []store.NewJob
	for _, w := range writes {
		var err error
		switch {
		case w.Create != nil:
			created = append(created, *w.Create)
		case w.State != nil:
			_, err = s.setJobState(t, *w.State, sum.note)
		case w.Update != nil:
			err = s.updateJob(t, *w.Update, sum.note)
		case w.Mark != nil:
			err = markDeclared(t, tenant, *w.Mark)
		case w.Propose != nil:
			err = propose(t, *w.Propose, now, sum.note)
		}
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(created, createOnce) {
		if err := s.insertJobs(t, some, sum.note); err != nil {
			return err
		}
	}
	return nil
}

// check refuses what has been written in this transaction beyond a quota.
func (g *growth) check(t *db.Tx, tenant domain.TenantID) error {
	if g.jobs <= 0 && g.fires <= 0 && g.bytes <= 0 {
		return nil
	}
	found, err := record.ReadQuotas(t.Ctx, t.Conn, tenant)
	if err != nil {
		return fmt.Errorf("read quotas: %w", err)
	}
	quotas := []domain.Quota{found[domain.QuotaJobs], found[domain.QuotaFires], record.OfDocuments(found[domain.QuotaStoredBytes])}
	by := []int64{g.jobs, g.fires, g.bytes}
	for i := range quotas {
		q := &quotas[i]
		if q.Max == 0 || by[i] <= 0 {
			continue
		}
		used, err := record.CountQuota(t.Ctx, t.Conn, t.Dialect, tenant, q.Kind)
		if err != nil {
			return fmt.Errorf("count %s: %w", q.Kind, err)
		}
		q.Used = max(used-by[i], 0) // before this transaction, which reads its own writes
	}
	return domain.CheckQuotas(quotas, by)
}
