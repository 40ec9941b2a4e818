package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/telemetry"
)

// answers is a store that answers as it is told.
type answers struct {
	telemetry.Store
	offers []store.OfferResult
	ended  []store.FinishResult
	claim  []domain.Execution
	err    error
}

func (a *answers) ClaimDueTriggers(context.Context, store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	return store.ClaimedTriggers{Executions: a.claim}, a.err
}

func (a *answers) OfferExecutions(context.Context, []store.Offer) ([]store.OfferResult, error) {
	return a.offers, a.err
}

func (a *answers) GiveBackOffers(context.Context, []store.GiveBack) ([]store.OfferResult, error) {
	return a.offers, a.err
}

func (a *answers) FinishAttempts(context.Context, []store.AttemptReport) ([]store.FinishResult, error) {
	return a.ended, a.err
}

func (a *answers) AppendLogs(context.Context, []store.LogAppend) (int, error) { return 1, a.err }

// value reads a counter by its labels.
func value(t *testing.T, m *telemetry.Metrics, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, metric := range f.Metric {
			var of []string
			for _, l := range metric.Label {
				of = append(of, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(of, labels) {
				return metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("there is no %s of %v", name, labels)
	return 0
}

// Steps passes each answer on and counts it.
func TestStepsCountAnswers(t *testing.T) {
	t.Parallel()
	a := &answers{
		offers: []store.OfferResult{{Status: store.OfferMade}, {Status: store.OfferMade}, {Status: store.OfferGone}},
		ended:  []store.FinishResult{{Code: store.FinishStored}},
	}
	m, missed := telemetry.New("test"), 0
	s := telemetry.NewSteps(telemetry.StepsOptions{Store: a, Metrics: m, Now: time.Now, Missed: func() { missed++ }})

	out, err := s.OfferExecutions(t.Context(), make([]store.Offer, 3))
	require.NoError(t, err)
	require.Equal(t, a.offers, out)
	require.Equal(t, 2.0, value(t, m, "carillon_offers_total", "made"))
	require.Equal(t, 1.0, value(t, m, "carillon_offers_total", "gone"))
	require.Equal(t, 0.0, value(t, m, "carillon_offers_total", "blocked"), "the series is there from the start")

	_, err = s.GiveBackOffers(t.Context(), []store.GiveBack{{Reason: domain.ReasonOfferRefused}, {Reason: "another"}, {Reason: domain.ReasonOfferRefused}})
	require.NoError(t, err)
	require.Equal(t, 1.0, value(t, m, "carillon_offers_returned_total", string(domain.ReasonOfferRefused)), "one was gone")
	require.Equal(t, 1.0, value(t, m, "carillon_offers_returned_total", "other"))

	_, err = s.FinishAttempts(t.Context(), []store.AttemptReport{{Report: domain.Report{Outcome: domain.OutcomeSucceeded}}})
	require.NoError(t, err)
	require.Equal(t, 1.0, value(t, m, "carillon_results_total", string(store.FinishStored), "succeeded"))

	line := domain.LogLine{Message: "12345"}
	_, err = s.AppendLogs(t.Context(), []store.LogAppend{{Chunks: []domain.LogChunk{{Lines: []domain.LogLine{line}}, {Lines: []domain.LogLine{line}}}}})
	require.NoError(t, err)
	require.Equal(t, 10.0, value(t, m, "carillon_log_bytes_total"))
	require.Equal(t, 1.0, value(t, m, "carillon_log_chunks_total", "stored"))
	require.Equal(t, 1.0, value(t, m, "carillon_log_chunks_total", "dropped"))
	a.err = errors.New("no database")
	_, err = s.AppendLogs(t.Context(), []store.LogAppend{{Chunks: make([]domain.LogChunk, 3)}})
	require.Error(t, err)
	require.Equal(t, 1.0, value(t, m, "carillon_log_chunks_total", "stored"), "nothing was stored")
	require.Zero(t, missed)
}

// A claim that writes missed runs tells of their event.
func TestMissedRunsAreTold(t *testing.T) {
	t.Parallel()
	a, missed := &answers{}, 0
	s := telemetry.NewSteps(telemetry.StepsOptions{Store: a, Metrics: telemetry.New("test"), Missed: func() { missed++ }})
	run := domain.Execution{State: domain.Missed, Reason: domain.ReasonNoExecutor}
	require.True(t, domain.MissedUntold(&run))
	for i, claim := range [][]domain.Execution{{{State: domain.Due}}, {run, run}} {
		a.claim = claim
		_, err := s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{})
		require.NoError(t, err)
		require.Equal(t, i, missed)
	}
}

// A transaction without a series of its own counts as another one. A refused request is no
// failure of the database.
func TestTransactionsAreCounted(t *testing.T) {
	t.Parallel()
	m := telemetry.New("test")
	m.ObserveTransaction(db.Transaction{Step: "offer executions", Took: time.Second, Repeats: 2, Err: domain.Errorf(domain.CodeUnavailable, "away")})
	m.ObserveTransaction(db.Transaction{Step: "something rare", Err: domain.Errorf(domain.CodeConflict, "taken")})
	require.Equal(t, 1.0, value(t, m, "carillon_transaction_seconds", "offer_executions"))
	require.Equal(t, 2.0, value(t, m, "carillon_transaction_repeats_total", "offer_executions"))
	require.Equal(t, 1.0, value(t, m, "carillon_transaction_failures_total", "offer_executions"))
	require.Equal(t, 1.0, value(t, m, "carillon_transaction_seconds", "other"))
	require.Zero(t, value(t, m, "carillon_transaction_failures_total", "other"))
}
