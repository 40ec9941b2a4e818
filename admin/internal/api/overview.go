package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Overview is the first page: is anything wrong, is anything late, what comes
// next.
type Overview struct {
	Runs24h   RunCounts           `json:"runs24h" doc:"Planned in the last 24 hours, by state"`
	Jobs      JobCounts           `json:"jobs" doc:"How many jobs there are"`
	Executors ExecutorCounts      `json:"executors" doc:"How many executors there are, by whether somebody is there"`
	NextFires []NextFire          `json:"nextFires" doc:"The next 20"`
	Attention []web.AttentionItem `json:"attention" doc:"What a person should look at, most urgent first"`
}

// RunCounts counts runs.
type RunCounts struct {
	Succeeded int64 `json:"succeeded" doc:"The handler ended well"`
	Failed    int64 `json:"failed" doc:"The handler failed, and no attempt is left"`
	TimedOut  int64 `json:"timedOut" doc:"The last attempt took longer than the job's timeout"`
	Lost      int64 `json:"lost" doc:"The outcome is unknown: the instance went silent"`
	Missed    int64 `json:"missed" doc:"Nobody could serve the fire time in time"`
	Excluded  int64 `json:"excluded" doc:"Fire times that a calendar or maintenance excluded, as planned"`
	Running   int64 `json:"running" doc:"Running or being cancelled"`
	Due       int64 `json:"due" doc:"Due, offered, or waiting for a retry"`
}

// JobCounts counts jobs.
type JobCounts struct {
	Enabled int `json:"enabled" doc:"Whose schedule fires"`
	Paused  int `json:"paused" doc:"That fire only when asked"`
}

// ExecutorCounts counts executors by whether an instance is online.
type ExecutorCounts struct {
	Online  int `json:"online" doc:"With at least one instance that is connected"`
	Offline int `json:"offline" doc:"Without any"`
}

// NextFire is a job with its next fire time.
type NextFire struct {
	JobID   string `json:"jobId" doc:"Id of the job"`
	JobName string `json:"jobName" doc:"Name of the job"`
	At      string `json:"at" format:"date-time" doc:"Its next fire time"`
}

// Bounds of what the overview looks at.
const (
	overviewFires     = 20
	overviewFailures  = 200
	overviewAttention = web.MaxAttention
)

// overview sums up a tenant for the first page.
type overview struct {
	// fixed after construction
	store interface {
		store.Jobs
		store.Runs
		store.Executors
	}
	maintenance *maintenance
	attention   []web.Attention // in this order
	now         func() time.Time
}

func (ov *overview) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/overview", ID: "overview", Tag: "system", Summary: "The tenant at a glance",
		Description: "Counts of the last 24 hours, what fires next, and what needs attention.",
	}, ov.overview)
}

func (ov *overview) overview(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Overview }, error) {
	since := ov.now().Add(-24 * time.Hour)
	counts, err := ov.store.CountExecutions(ctx, id.Tenant, id.Reach, since)
	if err != nil {
		return nil, err
	}
	out := Overview{Runs24h: countsOf(counts), NextFires: []NextFire{}, Attention: []web.AttentionItem{}}
	if out.Jobs.Enabled, out.Jobs.Paused, err = ov.store.CountJobs(ctx, id.Tenant, id.Reach); err != nil {
		return nil, err
	}
	next, err := ov.store.ListNextFires(ctx, id.Tenant, id.Reach, overviewFires)
	if err != nil {
		return nil, err
	}
	for _, v := range next {
		out.NextFires = append(out.NextFires, NextFire{JobID: v.ID.String(), JobName: v.Spec.Name, At: web.Instant(v.NextFireAt)})
	}
	if err := ov.maintenanceAttention(ctx, id, &out); err != nil {
		return nil, err
	}
	for _, look := range ov.attention {
		if id.Reach.Bounded() {
			break // they are about the whole tenant
		}
		items, err := look(ctx, id, since)
		if err != nil {
			return nil, err
		}
		out.Attention = append(out.Attention, items...)
	}
	if err := ov.executorAttention(ctx, id, &out); err != nil {
		return nil, err
	}
	return &struct{ Body Overview }{out}, ov.failureAttention(ctx, id, since, &out)
}

func countsOf(c map[domain.State]int64) RunCounts {
	return RunCounts{
		Succeeded: c[domain.Succeeded], Failed: c[domain.Failed], TimedOut: c[domain.TimedOut], Lost: c[domain.Lost],
		Missed: c[domain.Missed], Excluded: c[domain.Excluded], Running: c[domain.Running] + c[domain.Cancelling],
		Due: c[domain.Due] + c[domain.Offered] + c[domain.RetryWait],
	}
}

// maintenanceAttention names what is under maintenance.
func (ov *overview) maintenanceAttention(ctx context.Context, id auth.Identity, out *Overview) error {
	list, err := ov.maintenance.maintenancesOn(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range list[:min(len(list), overviewAttention)] {
		kinds := map[string]web.Bilingual{"cluster": {En: "the cluster", Zh: "集群"}, "tenant": {En: "the tenant", Zh: "租户"}, "executor": {En: "the executor", Zh: "执行器"}}
		modes := map[string]web.Bilingual{
			"wait": {En: "what is due waits", Zh: "到期的运行将等待"}, "skip": {En: "fire times are skipped", Zh: "触发将被跳过"}, "continue": {En: "everything goes on", Zh: "一切照常运行"},
		}
		item := web.AttentionItem{Kind: "maintenance", Text: web.Bilingual{En: "Maintenance of " + kinds[m.Kind].En, Zh: kinds[m.Kind].Zh + "维护中"}}
		if m.Kind == "executor" {
			item.ExecutorID = m.Subject.ID
			item.Text.En += fmt.Sprintf(" %q", m.Subject.Name)
			item.Text.Zh = fmt.Sprintf("执行器“%s”维护中", m.Subject.Name)
		}
		item.Text.En += ": " + modes[m.Mode].En
		item.Text.Zh += "：" + modes[m.Mode].Zh
		if m.Reason != "" {
			item.Text.En += " (" + m.Reason + ")"
			item.Text.Zh += "（" + m.Reason + "）"
		}
		item.Text.En, item.Text.Zh = item.Text.En+".", item.Text.Zh+"。"
		out.Attention = append(out.Attention, item)
	}
	return nil
}

// executorAttention counts the executors and names those that are offline
// while enabled jobs need them.
func (ov *overview) executorAttention(ctx context.Context, id auth.Identity, out *Overview) error {
	after, named := "", 0
	for {
		rows, err := ov.store.ListExecutors(ctx, store.ListExecutorsParams{Tenant: id.Tenant, Within: id.Reach, After: after, Limit: 200})
		if err != nil {
			return err
		}
		for _, e := range rows {
			if e.Online > 0 {
				out.Executors.Online++
				continue
			}
			out.Executors.Offline++
			if named >= overviewAttention {
				continue
			}
			jobs, err := ov.store.ListJobs(ctx, store.ListJobsParams{
				Tenant: id.Tenant, Executor: e.ID, State: domain.JobEnabled, Sort: store.SortByName, Limit: 1,
			})
			if err != nil {
				return err
			}
			if len(jobs) > 0 {
				named++
				out.Attention = append(out.Attention, web.AttentionItem{
					Kind: "executor_offline", ExecutorID: e.ID.String(), Text: web.Bilingual{
						En: fmt.Sprintf("No instance of the executor %q is online, and enabled jobs need it.", e.Name),
						Zh: fmt.Sprintf("执行器“%s”没有在线实例，但仍有已启用的任务依赖它。", e.Name),
					},
				})
			}
		}
		if len(rows) < 200 {
			return nil
		}
		after = rows[len(rows)-1].Name
	}
}

// failureAttention names the jobs whose newest run ended badly.
func (ov *overview) failureAttention(ctx context.Context, id auth.Identity, since time.Time, out *Overview) error {
	rows, err := ov.store.ListExecutions(ctx, store.ListExecutionsParams{
		Tenant: id.Tenant, Within: id.Reach, From: since, Limit: overviewFailures,
		States: []domain.State{domain.Failed, domain.TimedOut, domain.Lost, domain.Missed},
	})
	if err != nil {
		return err
	}
	seen := map[domain.JobID]bool{}
	items := 0
	for _, v := range rows {
		if seen[v.JobID] || items >= overviewAttention {
			continue
		}
		seen[v.JobID] = true
		job, err := ov.store.FindJob(ctx, id.Tenant, v.JobID)
		if domain.Is(err, domain.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		if job.LastRun == nil || job.LastRun.ID != v.ID {
			continue // a later run went well, or is under way
		}
		items++
		var told web.Bilingual
		if line := domain.ErrorLine(v.Error); line != "" {
			told = web.Bilingual{En: ": " + line, Zh: "：" + line}
		}
		out.Attention = append(out.Attention, web.AttentionItem{
			Kind: "job_failing", JobID: v.JobID.String(), Text: web.Bilingual{
				En: fmt.Sprintf("The last run of %q ended as %s", v.JobName, v.State) + told.En + ".",
				Zh: fmt.Sprintf("任务“%s”最近一次运行的结果为%s", v.JobName, stateZh[v.State]) + told.Zh + "。",
			},
		})
	}
	return nil
}

var stateZh = map[domain.State]string{
	domain.Failed: "失败", domain.TimedOut: "超时", domain.Lost: "失联", domain.Missed: "错过",
}
