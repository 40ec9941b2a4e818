package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func testAlertChannels(t *testing.T, f *alertFixture) {
	spec := noun.AlertChannelSpec{
		Name: "值班", Description: "on call", Kind: noun.ChannelTelegram, Enabled: true, Language: noun.LanguageChinese,
		Host: "https://h", BaseURL: "https://bots.example", ChatID: "-100", ThreadID: 7, Mentions: []string{"a"}, MentionAll: true,
		Templates: noun.ChannelTemplates{Title: "{{.title}}", Text: "t", HTML: "h", Body: "b", ContentType: "text/plain"},
	}
	made, err := f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Spec: spec, Secrets: []byte("sealed\x00")})
	f.ok(err)
	require.Equal(t, spec, made.Spec)
	require.Equal(t, []any{int64(1), []byte("sealed\x00")}, []any{made.Version, made.Secrets})
	_, err = f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Spec: spec})
	f.code(domain.CodeConflict, err)

	plain, err := f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertChannelSpec{
		Name: "mail", Kind: noun.ChannelEmail, Emails: []string{"ops@example.com"},
	}})
	f.ok(err)
	require.Empty(t, plain.Secrets)
	require.False(t, plain.Spec.Enabled)
	list, err := f.s.ListAlertChannels(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []noun.AlertChannel{plain, made}, list, "by name")

	changed := made
	changed.Spec.Name, changed.Spec.Enabled, changed.Spec.Templates = "oncall", false, noun.ChannelTemplates{}
	changed.Secrets = []byte("other")
	changed, err = f.put(changed)
	f.ok(err)
	require.Equal(t, []any{int64(2), []byte("other"), false, noun.ChannelTemplates{}}, []any{changed.Version, changed.Secrets, changed.Spec.Enabled, changed.Spec.Templates})
	_, err = f.put(made)
	f.code(domain.CodeRevisionMismatch, err)
	same := changed
	same.Spec.Name = plain.Spec.Name
	_, err = f.put(same)
	f.code(domain.CodeConflict, err)

	foreign := changed
	foreign.TenantID++
	_, err = f.s.FindAlertChannel(f.ctx, foreign.TenantID, changed.ID)
	f.code(domain.CodeNotFound, err)
	_, err = f.put(foreign)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, f.remove(foreign))
	list, err = f.s.ListAlertChannels(f.ctx, foreign.TenantID)
	f.ok(err)
	require.Empty(t, list)

	f.ok(f.remove(changed))
	f.code(domain.CodeNotFound, f.remove(changed))
	_, err = f.put(changed)
	f.code(domain.CodeNotFound, err)
}

func testAlertChannelsMost(t *testing.T, f *alertFixture) {
	create := func(n int) error {
		_, err := f.put(noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Spec: noun.AlertChannelSpec{
			Name: fmt.Sprint("c", n), Kind: noun.ChannelEmail, Emails: []string{"ops@example.com"},
		}})
		return err
	}
	for n := range noun.MaxAlertChannels {
		f.ok(create(n))
	}
	err := create(noun.MaxAlertChannels)
	f.code(domain.CodeConflict, err)
	require.ErrorContains(t, err, "delete one first")
}

// A delivery that names a channel comes with it as it is when it is claimed.
func testAlertChannelDeliveries(t *testing.T, f *alertFixture) {
	c, err := f.put(noun.AlertChannel{
		ID: domain.ChannelID(ids.Next()), TenantID: f.tenant, Secrets: []byte("sealed"),
		Spec: noun.AlertChannelSpec{Name: "team", Kind: noun.ChannelEmail, Enabled: true, Emails: []string{"ann@example.com", "bob@example.com"}},
	})
	f.ok(err)
	f.finish(f.start(f.run(f.job(nil))), domain.OutcomeFailed)
	f.expand(func(a notify.AlertContext) []noun.Delivery {
		foreign := c
		foreign.ID++
		return append(append(c.Deliveries(a.Event.ID), foreign.Deliveries(a.Event.ID)[:1]...), noun.Delivery{Channel: "email", Target: "zoe@example.com"})
	})
	due := f.claimDeliveries(0)
	require.Len(t, due, 4)
	byTarget := map[string]notify.DueDelivery{}
	gone := 0
	for _, d := range due {
		if d.Delivery.ChannelID == c.ID+1 {
			require.Nil(t, d.Channel, "there is none of that id")
			gone++
			continue
		}
		byTarget[d.Delivery.Target] = d
	}
	require.Equal(t, 1, gone)
	require.Equal(t, &c, byTarget["ann@example.com"].Channel)
	require.Equal(t, c.ID, byTarget["bob@example.com"].Delivery.ChannelID)
	require.Nil(t, byTarget["zoe@example.com"].Channel)

	c.Spec.Enabled = false
	_, err = f.put(c)
	f.ok(err)
	for _, d := range f.claimDeliveries(time.Minute) {
		if d.Delivery.ChannelID == c.ID {
			require.False(t, d.Channel.Spec.Enabled)
		}
	}
	f.ok(f.remove(c))
	all, err := f.s.ListDeliveries(f.ctx, notify.ListDeliveriesParams{Tenant: f.tenant})
	f.ok(err)
	require.Len(t, all, 4, "the log keeps what was told through it")
}
