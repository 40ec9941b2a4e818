package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Stopped implements run.Source.
func (b *batch) Stopped(jobs []domain.JobID) (run.JobStates, error) {
	return stoppedJobs(b.t.Ctx, b.t.Conn, jobs)
}

func stoppedJobs(ctx context.Context, q db.Querier, jobs []domain.JobID) (run.JobStates, error) {
	stopped := run.JobStates{}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id domain.JobID
		var state int64
		err := rows.Scan(&id, &state)
		if domain.JobState(state) != domain.JobEnabled {
			stopped[id] = domain.JobState(state)
		}
		return err
	}, "SELECT id, state FROM jobs WHERE id IN ("+db.IDList(jobs)+")")
	if err != nil {
		return nil, fmt.Errorf("read states of jobs: %w", err)
	}
	return stopped, nil
}

// mayResend leaves out the one-step offers that are not to be sent again,
// because their jobs were stopped: the sweep asks their instances.
func (s *Partitions) mayResend(ctx context.Context, list []domain.Execution) ([]domain.Execution, error) {
	var jobs []domain.JobID
	for _, e := range list {
		if e.State == domain.Running {
			jobs = append(jobs, e.JobID)
		}
	}
	if len(jobs) == 0 {
		return list, nil
	}
	stopped, err := stoppedJobs(ctx, s.Lookup, jobs)
	return slices.DeleteFunc(list, func(e domain.Execution) bool {
		return e.State == domain.Running && !stopped.MayResend(&e)
	}), err
}
