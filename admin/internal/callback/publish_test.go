package callback

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func TestMessageOf(t *testing.T) {
	task := executor.Task{ExecutionID: 77, Attempt: 2, FireTime: time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC), JobName: "close"}
	read := func(text string) *domain.PublishInput {
		var in domain.PublishInput
		require.NoError(t, json.Unmarshal([]byte(text), &in))
		return &in
	}
	m, err := messageOf(read(`{"connection":"c","exchange":"e","key":"order-{{input.order}}","headers":{"Job":"{{run.jobName}}"},
		"body":{"order":"{{input.order}}"},"input":{"order":7}}`), task)
	require.NoError(t, err)
	require.Equal(t, domain.Message{
		Connection: "c", Target: domain.MessageTarget{Exchange: "e"}, Body: []byte(`{"order":7}`), ContentType: "application/json",
		ID: "77", Headers: map[string]string{"Job": "close"}, PlannedAt: task.FireTime, Key: "order-7", RunID: "77", Attempt: 2,
	}, m)

	m, err = messageOf(read(`{"id":"day-{{run.attempt}}","body":"plain","contentType":"text/csv"}`), task)
	require.NoError(t, err)
	require.Equal(t, []string{"day-2", "plain", "text/csv"}, []string{m.ID, string(m.Body), m.ContentType})

	for _, wrong := range []string{
		`{"key":"{{input.x}}"}`, `{"id":"{{input.x}}"}`, `{"headers":{"X":"{{env.HOME}}"}}`, `{"body":"{{"}`, `{"topic":"{{run.id}}"}`,
	} {
		_, err = messageOf(read(wrong), task)
		require.Error(t, err, wrong)
	}
}

// The circuit of a connection opens when its broker says nothing, and not because
// it says no.
func TestTheCircuitOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var permanent, silent bool
		var failure error
		sent := 0
		m := &member{tenant: 3, limits: newLimits(), send: func(_ context.Context, m domain.Message) (bool, bool, error) {
			require.EqualValues(t, 3, m.Tenant)
			sent++
			return permanent, silent, failure
		}}
		try := func(ctx context.Context, connection string, times int) (err error) {
			for range times {
				_, err = m.publish(ctx, domain.PublishInput{Connection: connection})
			}
			return err
		}
		permanent, failure = true, errors.New("no such stream")
		require.ErrorIs(t, try(t.Context(), "a", 2*breakAfter), failure)
		permanent, failure = false, errors.New("the queue is full")
		require.ErrorIs(t, try(t.Context(), "a", 2*breakAfter), failure)
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("cancelled"))
		silent = true
		require.EqualError(t, try(gone, "a", 2*breakAfter), "cancelled")
		require.Equal(t, 6*breakAfter, sent)

		require.ErrorIs(t, try(t.Context(), "a", breakAfter), failure)
		sent = 0
		require.ErrorContains(t, try(t.Context(), "a", 5), "connection a has not answered")
		require.Zero(t, sent)
		failure = nil
		require.NoError(t, try(t.Context(), "b", 1), "another connection")
		time.Sleep(openFor)
		require.NoError(t, try(t.Context(), "a", 5), "and it is well again")
	})
}
