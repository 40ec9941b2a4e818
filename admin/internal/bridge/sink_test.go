package bridge

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// backs is a store that hears which offers are given back.
type backs struct {
	dispatch.Store
	got []store.GiveBack
}

func (b *backs) GiveBackOffers(_ context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	b.got = append(b.got, items...)
	return make([]store.OfferResult, len(items)), nil
}

// TestVoidAnswersMoveNothing: "void" answers a grant that came too late, whose
// attempt reports that it never started; "duplicate" an offer that was taken.
func TestVoidAnswersMoveNothing(t *testing.T) {
	t.Parallel()
	heard := &backs{}
	d := dispatch.New(dispatch.Options{
		Store: heard, Later: func(...domain.Execution) {}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	k := &Sink{Dispatch: d}
	k.Answered(&gateway.Session{Tenant: 3, Instance: 4}, []*proto.Answer{
		{ExecutionId: 1, Fence: 5, RejectCode: "void"},
		{ExecutionId: 2, Fence: 6, RejectCode: "busy", Message: "8 of 8"},
		{ExecutionId: 3, Fence: 7, RejectCode: "duplicate"},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Run(ctx) // handles what is queued
	require.Equal(t, []store.GiveBack{{
		Tenant: 3, ID: 2, Fence: 6, Instance: 4, Reason: domain.ReasonOfferRefused, Message: "busy: 8 of 8", Wait: 200 * time.Millisecond, Refused: true, Busy: true,
	}}, heard.got)
}

// TestAnUnknownOutcomeIsNoSuccess: an executor may be newer than this node.
func TestAnUnknownOutcomeIsNoSuccess(t *testing.T) {
	t.Parallel()
	require.Equal(t, domain.OutcomeFailed, gateway.ReportOf(&proto.Result{Outcome: proto.Outcome(99)}).Outcome)
	require.Equal(t, domain.OutcomeFailed, gateway.ReportOf(&proto.Result{Outcome: proto.Outcome_OUTCOME_UNSPECIFIED}).Outcome)
	for wire, want := range map[proto.Outcome]domain.Outcome{
		proto.Outcome_OUTCOME_SUCCEEDED: domain.OutcomeSucceeded, proto.Outcome_OUTCOME_FAILED: domain.OutcomeFailed,
		proto.Outcome_OUTCOME_TIMED_OUT: domain.OutcomeTimedOut, proto.Outcome_OUTCOME_CANCELLED: domain.OutcomeCancelled,
		proto.Outcome_OUTCOME_NEVER_STARTED: domain.OutcomeNeverStarted, proto.Outcome_OUTCOME_UNKNOWN: domain.OutcomeUnknown,
	} {
		require.Equal(t, want, gateway.ReportOf(&proto.Result{Outcome: wire}).Outcome)
	}
}
