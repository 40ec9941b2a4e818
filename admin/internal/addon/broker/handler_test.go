package broker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func TestMessageOf(t *testing.T) {
	task := executor.Task{ExecutionID: 77, Attempt: 2, FireTime: time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC), JobName: "close"}
	read := func(text string) *noun.PublishInput {
		var in noun.PublishInput
		require.NoError(t, json.Unmarshal([]byte(text), &in))
		return &in
	}
	m, err := messageOf(read(`{"connection":"c","exchange":"e","key":"order-{{input.order}}","headers":{"Job":"{{run.jobName}}"},
		"body":{"order":"{{input.order}}"},"input":{"order":7}}`), task)
	require.NoError(t, err)
	require.Equal(t, noun.Message{
		Connection: "c", Target: noun.MessageTarget{Exchange: "e"}, Body: []byte(`{"order":7}`), ContentType: "application/json",
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

// An answer of the broker, its silence and the end of the run are different outcomes for the
// circuit of the connection.
func TestOutcomesOfAConnection(t *testing.T) {
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("cancelled"))
	failure := errors.New("the broker says no")
	for _, test := range []struct {
		name              string
		ctx               context.Context
		permanent, silent bool
		err               error
		want              nodehandler.Outcome
		says              string
	}{
		{"it is kept", t.Context(), false, false, nil, nodehandler.Answered, ""},
		{"another try would fail in the same way", t.Context(), true, false, failure, nodehandler.Answered, "connection a: the broker says no"},
		{"the queue is full", t.Context(), false, false, failure, nodehandler.Unknown, "connection a: the broker says no"},
		{"it says nothing", t.Context(), false, true, failure, nodehandler.Unanswered, "connection a: the broker says no"},
		{"the run is cancelled", gone, false, true, failure, nodehandler.Unknown, "cancelled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := member{tenant: 3, send: func(_ context.Context, m noun.Message) (bool, bool, error) {
				require.EqualValues(t, 3, m.Tenant)
				return test.permanent, test.silent, test.err
			}}
			var got nodehandler.Outcome
			m.within = func(_ context.Context, receiver string, most int, call func() (nodehandler.Outcome, error)) (err error) {
				require.Equal(t, "connection a", receiver)
				require.Equal(t, perConnection, most)
				got, err = call()
				return err
			}
			_, err := m.publish(test.ctx, noun.PublishInput{Connection: "a"})
			require.Equal(t, test.want, got)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.says)
		})
	}
}
