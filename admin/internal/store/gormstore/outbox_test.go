package gormstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// A run that fails, runs that are missed and recorded events are in the outbox if the topic has
// a reader. Without one nothing is written there.
func TestUnreadTopics(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 2, domain.BlockParallel)
			written := func(unread domain.Topic) []domain.AlertEvent {
				s.Unread = unread
				offered, err := s.OfferExecutions(t.Context(), w.offers(w.plan(1)))
				require.NoError(t, err)
				granted, err := s.GrantOffers(t.Context(), w.grants(offered))
				require.NoError(t, err)
				reports := w.reports(granted)
				for i := range reports {
					reports[i].Report.Outcome, reports[i].Report.Output = domain.OutcomeFailed, nil
				}
				_, err = s.FinishAttempts(t.Context(), reports)
				require.NoError(t, err)
				_, err = s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: len(w.jobs), Plan: func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
					p := w.planOne(now, tr, spec)
					e := &p.Executions[0]
					e.State, e.Reason, e.WakeAt, e.FinishedAt = domain.Missed, domain.ReasonMisfire, time.Time{}, now
					return p
				}})
				require.NoError(t, err)
				require.NoError(t, s.RecordAlerts(t.Context(), []domain.AlertEvent{{Kind: domain.AlertOverload, DedupeKey: "overload"}}))
				return storetest.TakeOutbox[domain.AlertEvent](t, s, domain.TopicEvents)
			}
			require.Empty(t, written(domain.TopicEvents))
			require.Len(t, written(0), 2+2+1)
		})
	}
}
