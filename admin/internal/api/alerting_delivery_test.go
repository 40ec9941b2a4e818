package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestDeliveries(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	job := w.job("acme", "bad", shop)
	run := w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "no"})
	w.expandAlerts(noun.Delivery{Channel: "email", Target: "a@example.com"}, noun.Delivery{Channel: "email", Target: "b@example.com"},
		noun.Delivery{Channel: "email", Target: "c@example.com"})
	page := into[web.Page[route.Delivery]](w.call("acme/viewer", "GET", "/deliveries?limit=2", nil).is(200))
	require.Len(t, page.Items, 2)
	require.Equal(t, "run_failed", page.Items[0].Kind)
	require.Equal(t, job.ID, *page.Items[0].JobID)
	require.Equal(t, run.ID.String(), *page.Items[0].RunID)
	require.Equal(t, "pending", page.Items[0].State)
	rest := into[web.Page[route.Delivery]](w.call("acme/viewer", "GET", "/deliveries?limit=2&cursor="+*page.NextCursor, nil).is(200))
	require.Len(t, rest.Items, 1)
	require.Nil(t, rest.NextCursor)
	require.Empty(t, into[web.Page[route.Delivery]](w.call("acme/viewer", "GET", "/deliveries?state=failed", nil).is(200)).Items)
	require.Len(t, into[web.Page[route.Delivery]](w.call("acme/viewer", "GET", "/deliveries?jobId="+job.ID, nil).is(200)).Items, 3)
}

// Mail or a channel that does not work is told on the tenant's page, until an alert arrives.
func TestOverviewTellsOfAlertsThatDoNotArrive(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	job := w.job("acme", "bad", shop)
	told := func(role string) (out []string) {
		for _, a := range into[Overview](w.call("acme/"+role, "GET", "/overview", nil).is(200)).Attention {
			if a.Kind == "alerts_undelivered" {
				out = append(out, a.Text.En)
				require.Contains(t, a.Text.Zh, "未能送达")
			}
		}
		return out
	}
	deliver := func(state noun.DeliveryState, lastError string, d noun.Delivery) {
		d.ID = w.ids.Next()
		w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "no"})
		w.expandAlerts(d)
		if state != noun.DeliveryPending {
			require.NoError(t, w.alerts().FinishDelivery(t.Context(), d.ID, state, 0, lastError))
		}
	}
	mail, channel := noun.Delivery{Channel: "email", Target: "ann@example.com"}, noun.Delivery{Channel: "slack", ChannelID: 7, Target: "on-call"}
	deliver(noun.DeliveryDelivered, "", mail)
	require.Empty(t, told("viewer"))
	deliver(noun.DeliveryFailed, "mail is not configured on this server (mail-host)\nmore", mail)
	deliver(noun.DeliveryFailed, "404 no such channel", channel)
	deliver(noun.DeliveryPending, "", channel)
	require.ElementsMatch(t, []string{"The last alert by mail did not arrive.", `The last alert through the channel "on-call" did not arrive.`}, told("viewer"))
	require.ElementsMatch(t, []string{
		"The last alert by mail did not arrive: mail is not configured on this server (mail-host).", `The last alert through the channel "on-call" did not arrive: 404 no such channel.`,
	}, told("editor"))
	deliver(noun.DeliveryDelivered, "", mail)
	require.Equal(t, []string{`The last alert through the channel "on-call" did not arrive.`}, told("viewer"))
}

// A tenant without a default channel is told so, in both languages.
func TestOverviewTellsThatAlertsReachNobody(t *testing.T) {
	w := newWorld(t)
	told := func() (out []web.AttentionItem) {
		for _, a := range into[Overview](w.call("acme/viewer", "GET", "/overview", nil).is(200)).Attention {
			if a.Kind == "alerts_reach_nobody" {
				out = append(out, a)
			}
		}
		return out
	}
	items := told()
	require.Len(t, items, 1)
	require.Contains(t, items[0].Text.En, "no default alert channel that works")
	require.Contains(t, items[0].Text.Zh, "没有可用的默认告警渠道")
	settings := w.call("acme/viewer", "GET", "/alert-settings", nil).is(200)
	w.call("acme/editor", "PUT", "/alert-settings", map[string]any{"defaultChannelIds": []string{w.alertChannel("acme", "ops")}}, header{"If-Match": settings.header.Get("ETag")}).is(200)
	require.Empty(t, told())
}
