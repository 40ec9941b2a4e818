package gormstore

import (
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// The connection breaks during COMMIT, after the database has committed or before: every move gives the answer that is true either way.
func TestLostCommitAnswers(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			for cut, commit := range map[string]func(*sql.Tx) error{"after commit": (*sql.Tx).Commit, "before commit": (*sql.Tx).Rollback} {
				t.Run(cut, func(t *testing.T) { testLostAnswers(t, s, commit) })
			}
		})
	}
}

// testLostAnswers has commit happen in truth when an answer is lost.
func testLostAnswers(t *testing.T, s *Store, commit func(*sql.Tx) error) {
	ctx := t.Context()
	cuts := 0
	whole := func() { s.Commit = (*sql.Tx).Commit }
	lose := func() { // the next commit's answer
		s.Commit = func(tx *sql.Tx) error {
			whole()
			cuts++
			if err := commit(tx); err != nil {
				return err
			}
			return driver.ErrBadConn
		}
	}
	whole()
	if tenant, err := s.FindTenantByName(ctx, "world"); err == nil {
		_, err := s.Write.ExecContext(ctx, "UPDATE tenants SET name = 'former' WHERE id = ?", int64(tenant.ID))
		require.NoError(t, err)
		_, err = s.Write.ExecContext(ctx, "UPDATE triggers SET next_fire_at = ?", db.Millis(domain.Never))
		require.NoError(t, err)
	}
	w := newWorld(t, s, 3, domain.BlockSerial)

	lose()
	claimed := w.plan(1)
	lose()
	offered, err := s.OfferExecutions(ctx, w.offers(claimed))
	require.NoError(t, err)
	for _, r := range offered {
		require.Equal(t, store.OfferMade, r.Status)
		require.EqualValues(t, 1, r.Execution.Fence)
	}
	lose()
	granted, err := s.GrantOffers(ctx, w.grants(offered))
	require.NoError(t, err)
	for _, r := range granted {
		require.True(t, r.Granted)
	}
	lose()
	finished, err := s.FinishAttempts(ctx, w.reports(granted))
	require.NoError(t, err)
	for _, r := range finished {
		require.Equal(t, store.FinishStored, r.Code)
	}

	// The slot is free again, once.
	var holders int
	require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT SUM(holders) FROM job_slots WHERE tenant_id = ?", int64(w.tenant)).Scan(&holders))
	require.Zero(t, holders)

	next := w.plan(1)
	lose()
	one, err := s.OfferExecutions(ctx, []store.Offer{{Tenant: w.tenant, ID: next[0].ID, Node: 1, Instance: w.instance, Idempotent: true, Granted: true}})
	require.NoError(t, err)
	require.Equal(t, store.OfferMade, one[0].Status, "or it would run nowhere and never end")
	require.EqualValues(t, 1, one[0].Execution.Fence, "what is sent is what is stored")
	require.Equal(t, domain.Running, one[0].Execution.State)
	lose()
	cancelled, err := s.RequestCancel(ctx, w.tenant, next[1].ID, domain.ReasonKilled, "")
	require.NoError(t, err)
	require.Equal(t, domain.Cancelled, cancelled.State)

	e := w.planOne(time.Now(), domain.Trigger{JobID: w.jobs[0], TenantID: w.tenant, Executor: w.executor, Revision: 1, NextFireAt: time.Now()}, nil).Executions[0]
	e.Cause, e.OccurrenceKey = domain.CauseAPI, "once"
	lose()
	run, created, err := s.CreateExecution(ctx, e)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, e.ID, run.ID)

	hash := sha256.Sum256([]byte(e.ID.String()))
	require.NoError(t, s.CreateRefreshToken(ctx, domain.RefreshToken{Hash: hash, TenantID: w.tenant, ExpiresAt: time.Now().Add(time.Hour)}))
	lose()
	_, err = s.UseRefreshToken(ctx, hash, 0)
	require.NoError(t, err, "a repeated commit is no stolen token")

	// An edit is not repeated: the caller is told that nobody knows.
	lose()
	_, err = s.SetJobState(ctx, store.SetJobStateParams{Tenant: w.tenant, ID: w.jobs[0], State: domain.JobPaused})
	require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err), "%v", err)
	require.Equal(t, 9, cuts)
}

// The database refuses each commit: no answer, no count and no cache says what was not stored.
func TestARefusedCommitTellsNothing(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			ctx := t.Context()
			w := newWorld(t, s, 1, domain.BlockSerial)
			job := w.timers(3, time.Now().Add(time.Hour))
			keys := []string{"key 0", "key 1", "key 2"}
			require.NoError(t, s.SetQuotas(ctx, store.SetQuotasParams{Tenant: w.tenant, Max: map[domain.QuotaKind]int64{domain.QuotaInstances: 2}, By: "root"}))
			boot := store.RegisterInstanceParams{
				Instance: domain.Instance{ID: domain.InstanceID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, BootID: "second"}, TTL: time.Hour,
			}
			refused := errors.New("the disk is full")
			s.Commit = func(tx *sql.Tx) error { return errors.Join(refused, tx.Rollback()) }

			for _, r := range s.CancelTimers(ctx, store.CancelTimersParams{Tenant: w.tenant, Job: job, Keys: keys, By: "anna"}) {
				require.ErrorIs(t, r.Err, refused)
				require.Zero(t, r.View)
			}
			for _, r := range s.SetTimers(ctx, store.SetTimersParams{Timers: []store.SetTimer{{Timer: domain.Timer{
				ID: domain.TimerID(w.ids.Next()), TenantID: w.tenant, JobID: job, FireAt: time.Now().Add(time.Hour), Key: "new",
			}}}}) {
				require.ErrorIs(t, r.Err, refused)
				require.Zero(t, r.View)
			}
			never := func(time.Time, *domain.JobSpec) time.Time { return domain.Never }
			fresh := func(name string) store.NewJob {
				return store.NewJob{Next: never, Job: domain.Job{
					ID: domain.JobID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, Source: domain.SourceConsole,
					Spec: domain.JobSpec{Name: name, Handler: "h", Blocking: domain.BlockSerial, Timeout: time.Minute},
				}}
			}
			for _, err := range s.CreateJobs(ctx, w.tenant, []store.NewJob{fresh("new"), fresh("new")}) {
				require.ErrorIs(t, err, refused, "neither name is taken")
			}
			now, renewed, err := s.RenewInstances(ctx, []store.InstanceRenewal{{ID: w.instance}}, time.Hour)
			require.ErrorIs(t, err, refused)
			require.Empty(t, renewed)
			require.Zero(t, now)
			for range 3 {
				got, err := s.RegisterInstances(ctx, []store.RegisterInstanceParams{boot})
				require.True(t, err != nil || got[0].Err != nil)
			}

			s.Commit = (*sql.Tx).Commit
			got, err := s.RegisterInstances(ctx, []store.RegisterInstanceParams{boot})
			require.NoError(t, err)
			require.NoError(t, got[0].Err, "instances that were never stored count")
			boot.Instance.ID, boot.Instance.BootID = domain.InstanceID(w.ids.Next()), "third"
			got, err = s.RegisterInstances(ctx, []store.RegisterInstanceParams{boot})
			require.NoError(t, err)
			require.Equal(t, domain.CodeQuotaExceeded, domain.CodeOf(got[0].Err))
			require.NoError(t, errors.Join(s.CreateJobs(ctx, w.tenant, []store.NewJob{fresh("new")})...))
			for _, r := range s.CancelTimers(ctx, store.CancelTimersParams{Tenant: w.tenant, Job: job, Keys: keys, By: "anna"}) {
				require.NoError(t, r.Err)
				require.Equal(t, domain.Cancelled, r.View.Run.State)
			}
		})
	}
}

// A database that is away for longer than a transaction is repeated costs what
// executors have accepted no more than that: their offers are not left to expire.
func TestGrantsWaitForTheDatabase(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockSerial)
			offered, err := s.OfferExecutions(t.Context(), w.offers(w.plan(1)))
			require.NoError(t, err)
			refused := 0
			away := func() bool { refused++; return refused <= 2*db.TxTries }
			s.Commit = func(tx *sql.Tx) error {
				if !away() {
					return tx.Commit()
				}
				if err := tx.Rollback(); err != nil {
					return err
				}
				return driver.ErrBadConn
			}
			granted, err := s.GrantOffers(t.Context(), w.grants(offered))
			require.NoError(t, err)
			require.Len(t, granted, 3)
			for _, r := range granted {
				require.True(t, r.Granted)
			}
			require.Greater(t, refused, 2*db.TxTries)
		})
	}
}
