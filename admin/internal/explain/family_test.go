package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestFamilies(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	spec := &domain.JobSpec{Handler: "h", Sharding: domain.Sharding{Mode: domain.ShardBroadcast, Before: "b", After: "a"}}
	parent := domain.Execution{ID: 7, FireAt: at, PlannedAt: at, Shards: 3, StartedAt: at, Cause: domain.CauseSchedule}
	shard := domain.Execution{
		ID: 9, Parent: 7, Part: domain.PartShard, Shard: 1, Shards: 3, Bound: 20, FireAt: at, PlannedAt: at.Add(time.Second),
		State: domain.Missed, Reason: domain.ReasonInstanceGone, FinishedAt: at.Add(2 * time.Second), Cause: domain.CauseSchedule,
	}
	counts := domain.Family{Shards: map[domain.State]int{domain.Succeeded: 1, domain.Missed: 1}}
	instances := []domain.Instance{{ID: 20, Name: "till-2"}}

	for name, c := range map[string]struct {
		state  domain.State
		stage  domain.Stage
		reason domain.Reason
		picks  int
		en, zh string
	}{
		"before": {state: domain.Running, stage: domain.StageBefore, en: "The hook before its shards has not ended yet.", zh: "前置钩子尚未结束。"},
		"ready":  {state: domain.Due, stage: domain.StageReady, en: "the shards come next", zh: "接下来分片"},
		"shards": {state: domain.Running, stage: domain.StageShards, en: "Its shards are running; 1 of 3 shards succeeded, 1 missed, 1 not ended.", zh: "3 个分片中 1 个成功，1 个错过，1 个未结束"},
		"after":  {state: domain.Running, stage: domain.StageAfter, en: "the hook after them has not yet", zh: "后置钩子尚未结束"},
		"stops":  {state: domain.Cancelling, stage: domain.StageShards, reason: domain.ReasonKilled, en: "because somebody cancelled it, and its parts have been asked to stop", zh: "已请求各部分停止"},
		"failed": {state: domain.Failed, stage: domain.StageShards, reason: domain.ReasonShards, en: "It ended as failed, because not all of its shards succeeded; 1 of 3", zh: "并非所有分片都成功"},
		"good":   {state: domain.Succeeded, stage: domain.StageShards, picks: 2, en: "It succeeded: 1 of 2 shards succeeded", zh: "2 个分片中 1 个成功"},
	} {
		t.Run(name, func(t *testing.T) {
			e := parent
			e.State, e.Stage, e.Reason, e.Picks = c.state, c.stage, c.reason, make([]domain.ShardPick, c.picks)
			got := Run{Execution: e, Spec: spec, Parts: []domain.Execution{shard}, Family: counts, Instances: instances, Now: at}.Explain()
			require.Contains(t, got.Summary.En, c.en)
			require.Contains(t, got.Summary.Zh, c.zh)
			require.Empty(t, got.Candidates, "it goes to no instance")
		})
	}

	e := parent
	e.State, e.Stage, e.Reason, e.FinishedAt = domain.Failed, domain.StageShards, domain.ReasonShards, at.Add(3*time.Second)
	var told []string
	for _, s := range (Run{Execution: e, Spec: spec, Parts: []domain.Execution{shard}, Family: counts, Now: at}).Explain().Steps {
		told = append(told, s.Code)
	}
	require.Equal(t, []string{"planned", "claimed", "spread", "part_ended", "finished"}, told)

	got := Run{Execution: shard, Spec: spec.For(domain.PartShard), Instances: instances, Now: at}.Explain()
	require.Equal(t, "Shard 1 of 3 of run 7, for instance till-2 alone. It did not run, because the instance that the shard was for had gone.", got.Summary.En)
	require.Contains(t, got.Summary.Zh, "分片 1（共 3 个），属于运行 7，仅限实例 till-2。未运行：该分片所属的实例已消失。")
}
