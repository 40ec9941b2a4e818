package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Overview is the first page: is anything wrong, is anything late, what comes
// next.
type Overview struct {
	Runs24h   RunCounts       `json:"runs24h" doc:"Planned in the last 24 hours, by state"`
	Jobs      JobCounts       `json:"jobs" doc:"How many jobs there are"`
	Executors ExecutorCounts  `json:"executors" doc:"How many executors there are, by whether somebody is there"`
	NextFires []NextFire      `json:"nextFires" doc:"The next 20"`
	Attention []AttentionItem `json:"attention" doc:"What a person should look at, most urgent first"`
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

// AttentionItem is something that a person should look at.
type AttentionItem struct {
	Kind       string    `json:"kind" enum:"maintenance,alerts_undelivered,alerts_reach_nobody,executor_offline,job_failing" doc:"What is wrong: maintenance (nothing is to start), alerts_reach_nobody (no default channel works), alerts_undelivered (the newest alert by mail or through a channel was given up), executor_offline (enabled jobs need an executor without instances), job_failing (the newest run ended badly)"`
	JobID      string    `json:"jobId,omitempty" doc:"The job; absent when it is about none"`
	ExecutorID string    `json:"executorId,omitempty" doc:"The executor; absent when it is about none"`
	Text       Bilingual `json:"text" doc:"The same for people"`
}

// Bounds of what the overview looks at.
const (
	overviewFires     = 20
	overviewFailures  = 200
	overviewAlerts    = 200
	overviewAttention = 10 // of each kind
)

func (a *API) registerOverview() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/overview", ID: "overview", Tag: "system", Summary: "The tenant at a glance",
		Description: "Counts of the last 24 hours, what fires next, and what needs attention.",
	}, a.overview)
}

func (a *API) overview(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Overview }, error) {
	since := a.deps.Now().Add(-24 * time.Hour)
	counts, err := a.deps.Store.CountExecutions(ctx, id.Tenant, since)
	if err != nil {
		return nil, err
	}
	out := Overview{Runs24h: countsOf(counts), NextFires: []NextFire{}, Attention: []AttentionItem{}}
	if out.Jobs.Enabled, out.Jobs.Paused, err = a.deps.Store.CountJobs(ctx, id.Tenant); err != nil {
		return nil, err
	}
	next, err := a.deps.Store.ListNextFires(ctx, id.Tenant, overviewFires)
	if err != nil {
		return nil, err
	}
	for _, v := range next {
		out.NextFires = append(out.NextFires, NextFire{JobID: v.ID.String(), JobName: v.Spec.Name, At: web.Instant(v.NextFireAt)})
	}
	if err := a.maintenanceAttention(ctx, id, &out); err != nil {
		return nil, err
	}
	if err := a.deliveryAttention(ctx, id, since, &out); err != nil {
		return nil, err
	}
	if err := a.receiverAttention(ctx, id, &out); err != nil {
		return nil, err
	}
	if err := a.executorAttention(ctx, id, &out); err != nil {
		return nil, err
	}
	return &struct{ Body Overview }{out}, a.failureAttention(ctx, id, since, &out)
}

func countsOf(c map[domain.State]int64) RunCounts {
	return RunCounts{
		Succeeded: c[domain.Succeeded], Failed: c[domain.Failed], TimedOut: c[domain.TimedOut], Lost: c[domain.Lost],
		Missed: c[domain.Missed], Excluded: c[domain.Excluded], Running: c[domain.Running] + c[domain.Cancelling],
		Due: c[domain.Due] + c[domain.Offered] + c[domain.RetryWait],
	}
}

// maintenanceAttention names what is under maintenance.
func (a *API) maintenanceAttention(ctx context.Context, id auth.Identity, out *Overview) error {
	list, err := a.maintenancesOn(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range list[:min(len(list), overviewAttention)] {
		kinds := map[string]Bilingual{"cluster": {"the cluster", "集群"}, "tenant": {"the tenant", "租户"}, "executor": {"the executor", "执行器"}}
		modes := map[string]Bilingual{
			"wait": {"what is due waits", "到期的运行将等待"}, "skip": {"fire times are skipped", "触发将被跳过"}, "continue": {"everything goes on", "一切照常运行"},
		}
		item := AttentionItem{Kind: "maintenance", Text: Bilingual{En: "Maintenance of " + kinds[m.Kind].En, Zh: kinds[m.Kind].Zh + "维护中"}}
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

// receiverAttention says that no default channel works.
func (a *API) receiverAttention(ctx context.Context, id auth.Identity, out *Overview) error {
	settings, err := a.deps.Store.FindAlertSettings(ctx, id.Tenant)
	if err != nil {
		return err
	}
	nobody, err := route.ReachesNobody(ctx, a.deps.Store, a.deps.Channels, &settings)
	if nobody {
		out.Attention = append(out.Attention, AttentionItem{Kind: "alerts_reach_nobody", Text: Bilingual{
			En: "This tenant has no default alert channel that works. Failures of timers and calls, and of jobs that name no receiver, reach nobody.",
			Zh: "此租户没有可用的默认告警渠道。定时器和调用的失败，以及没有指定任何人的任务的失败，不会通知任何人。",
		}})
	}
	return err
}

// deliveryAttention names mail and channels whose newest alert of the last day was given
// up. The next alert would not arrive either.
func (a *API) deliveryAttention(ctx context.Context, id auth.Identity, since time.Time, out *Overview) error {
	rows, err := a.deps.Store.ListDeliveries(ctx, store.ListDeliveriesParams{Tenant: id.Tenant, Limit: overviewAlerts})
	if err != nil {
		return err
	}
	type means struct {
		channel string
		id      domain.ChannelID
	}
	seen := map[means]bool{}
	items := 0
	for n := range rows {
		d := &rows[n]
		by := means{d.Channel, d.ChannelID}
		if d.State == domain.DeliveryPending || d.CreatedAt.Before(since) || seen[by] || items >= overviewAttention {
			continue
		}
		if seen[by] = true; d.State != domain.DeliveryFailed {
			continue
		}
		items++
		en, zh := "by "+d.Channel, "通过 "+d.Channel+" 发送的"
		switch {
		case d.ChannelID != 0:
			en, zh = fmt.Sprintf("through the channel %q", d.Target), fmt.Sprintf("通过告警渠道“%s”发送的", d.Target)
		case d.Channel == string(domain.ChannelEmail):
			en, zh = "by mail", "通过邮件发送的"
		}
		en, zh = "The last alert "+en+" did not arrive", zh+"最近一条告警未能送达"
		if line := domain.ErrorLine(d.LastError); line != "" && id.May(domain.PermEdit) { // it may say something of servers inside
			en, zh = en+": "+line, zh+"："+line
		}
		out.Attention = append(out.Attention, AttentionItem{Kind: "alerts_undelivered", Text: Bilingual{En: en + ".", Zh: zh + "。"}})
	}
	return nil
}

// executorAttention counts the executors and names those that are offline
// while enabled jobs need them.
func (a *API) executorAttention(ctx context.Context, id auth.Identity, out *Overview) error {
	after, named := "", 0
	for {
		rows, err := a.deps.Store.ListExecutors(ctx, store.ListExecutorsParams{Tenant: id.Tenant, After: after, Limit: 200})
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
			jobs, err := a.deps.Store.ListJobs(ctx, store.ListJobsParams{
				Tenant: id.Tenant, Executor: e.ID, State: domain.JobEnabled, Sort: store.SortByName, Limit: 1,
			})
			if err != nil {
				return err
			}
			if len(jobs) > 0 {
				named++
				out.Attention = append(out.Attention, AttentionItem{
					Kind: "executor_offline", ExecutorID: e.ID.String(), Text: Bilingual{
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
func (a *API) failureAttention(ctx context.Context, id auth.Identity, since time.Time, out *Overview) error {
	rows, err := a.deps.Store.ListExecutions(ctx, store.ListExecutionsParams{
		Tenant: id.Tenant, From: since, Limit: overviewFailures,
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
		job, err := a.deps.Store.FindJob(ctx, id.Tenant, v.JobID)
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
		var told Bilingual
		if line := domain.ErrorLine(v.Error); line != "" {
			told = Bilingual{En: ": " + line, Zh: "：" + line}
		}
		out.Attention = append(out.Attention, AttentionItem{
			Kind: "job_failing", JobID: v.JobID.String(), Text: Bilingual{
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
