package route

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// attentionDeliveries is how many of the newest deliveries the overview looks at.
const attentionDeliveries = 200

// Attention returns what the overview says of a tenant's alerts.
func Attention(deps Deps) web.Attention {
	a := &api{deps: deps}
	return func(ctx context.Context, id auth.Identity, since time.Time) ([]web.AttentionItem, error) {
		undelivered, err := a.undelivered(ctx, id, since)
		if err != nil {
			return nil, err
		}
		unheard, err := a.unheard(ctx, id)
		return append(undelivered, unheard...), err
	}
}

// unheard says that no default channel works.
func (a *api) unheard(ctx context.Context, id auth.Identity) ([]web.AttentionItem, error) {
	settings, err := a.deps.Store.FindAlertSettings(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	nobody, err := reachesNobody(ctx, a.deps.Store, a.deps.Channels, &settings)
	if err != nil || !nobody {
		return nil, err
	}
	return []web.AttentionItem{{Kind: "alerts_reach_nobody", Text: web.Bilingual{
		En: "This tenant has no default alert channel that works. Failures of timers and calls, and of jobs that name no receiver, reach nobody.",
		Zh: "此租户没有可用的默认告警渠道。定时器和调用的失败，以及没有指定任何人的任务的失败，不会通知任何人。",
	}}}, nil
}

// undelivered names mail and channels whose newest alert of the last day was given
// up. The next alert would not arrive either.
func (a *api) undelivered(ctx context.Context, id auth.Identity, since time.Time) ([]web.AttentionItem, error) {
	rows, err := a.deps.Store.ListDeliveries(ctx, notify.ListDeliveriesParams{Tenant: id.Tenant, Limit: attentionDeliveries})
	if err != nil {
		return nil, err
	}
	type means struct {
		channel string
		id      domain.ChannelID
	}
	seen := map[means]bool{}
	var items []web.AttentionItem
	for n := range rows {
		d := &rows[n]
		by := means{d.Channel, d.ChannelID}
		if d.State == noun.DeliveryPending || d.CreatedAt.Before(since) || seen[by] || len(items) >= web.MaxAttention {
			continue
		}
		if seen[by] = true; d.State != noun.DeliveryFailed {
			continue
		}
		en, zh := "by "+d.Channel, "通过 "+d.Channel+" 发送的"
		switch {
		case d.ChannelID != 0:
			en, zh = fmt.Sprintf("through the channel %q", d.Target), fmt.Sprintf("通过告警渠道“%s”发送的", d.Target)
		case d.Channel == string(noun.ChannelEmail):
			en, zh = "by mail", "通过邮件发送的"
		}
		en, zh = "The last alert "+en+" did not arrive", zh+"最近一条告警未能送达"
		if line := domain.ErrorLine(d.LastError); line != "" && id.May(domain.PermEdit) { // it may say something of servers inside
			en, zh = en+": "+line, zh+"："+line
		}
		items = append(items, web.AttentionItem{Kind: "alerts_undelivered", Text: web.Bilingual{En: en + ".", Zh: zh + "。"}})
	}
	return items, nil
}
