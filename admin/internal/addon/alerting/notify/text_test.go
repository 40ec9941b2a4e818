package notify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// One is one thing, several are several, in both languages.
func TestCounts(t *testing.T) {
	n := Sample(domain.AlertNoExecutor)
	n.Incident = &noun.Incident{Kind: domain.AlertNoExecutor, State: noun.IncidentOpen, Events: 1, Jobs: []noun.IncidentJob{{ID: 3, Name: "close-day"}}, OpenedAt: n.Event.CreatedAt}
	require.Contains(t, n.Summary(English), "1 event of 1 job since")
	require.Contains(t, n.Summary(Chinese), "共 1 次，涉及 1 个任务：")
	n.Incident.Events, n.Incident.Jobs = 3, append(n.Incident.Jobs, noun.IncidentJob{ID: 4, Name: "open-day"})
	require.Contains(t, n.Summary(English), "3 events of 2 jobs since")
	require.Equal(t, "No executor online: 2 jobs of executor billing", n.Title(English))
	require.Equal(t, "没有在线的执行器：执行器 billing 的 2 个任务", n.Title(Chinese))
	n.Incident.State, n.Incident.Events = noun.IncidentResolved, 1
	require.Contains(t, n.Summary(English), "no instance was online, 1 event in all.")
	one := Sample(domain.AlertRunFailed)
	one.Incident = &noun.Incident{Kind: domain.AlertRunFailed, Job: 3, State: noun.IncidentOpen, Events: 2}
	require.Equal(t, "Failed: close-day (2 runs)", one.Title(English))
	require.Contains(t, one.Summary(English), "happened 2 times")
}

// A run that is late says what it waits for.
func TestLateRunsSayWhatTheyWaitFor(t *testing.T) {
	n := Sample(domain.AlertRunLate)
	n.Execution.State, n.Execution.Reason = domain.Due, domain.ReasonWaitSlot
	require.Equal(t, "The run is due and has not started. It waits for an earlier run of its job to end.", n.Summary(English))
	require.Equal(t, "本次执行已到计划时间，但尚未开始。正在等待该任务的上一次执行结束。", n.Summary(Chinese))
	n.Execution.State, n.Execution.Reason = domain.Running, ""
	require.Equal(t, "The run is due and has not started.", n.Summary(English))
}
