package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// testDefaultReceiver gives a tenant one while its alert settings were never saved, and
// only once.
func testDefaultReceiver(t *testing.T, f *alertFixture) {
	mails := true
	unheard := func() *notify.UnheardTenant {
		list, err := f.s.ListUnheardTenants(f.ctx, mails)
		f.ok(err)
		for n := range list {
			if list[n].ID == f.tenant {
				return &list[n]
			}
		}
		return nil
	}
	wanted := func() noun.AlertChannel {
		return noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: f.tenant,
			Spec: noun.AlertChannelSpec{Name: "default", Kind: noun.ChannelEmail, Enabled: true, Emails: []string{"ops@example.com"}}}
	}
	require.True(t, unheard().Fresh)
	first := wanted()
	made, err := f.s.CreateDefaultReceiver(f.ctx, first, "node")
	f.ok(err)
	require.True(t, made)
	require.Nil(t, unheard())
	mails = false
	require.False(t, unheard().Fresh, "its only default channel sends mails")
	mails = true
	channel, err := f.s.FindAlertChannel(f.ctx, f.tenant, first.ID)
	f.ok(err)
	require.Equal(t, first.Spec, channel.Spec)
	settings, err := f.s.FindAlertSettings(f.ctx, f.tenant)
	f.ok(err)
	require.EqualValues(t, 1, settings.Version)
	require.Equal(t, []domain.ChannelID{first.ID}, settings.DefaultChannels)

	made, err = f.s.CreateDefaultReceiver(f.ctx, wanted(), "node")
	f.ok(err)
	require.False(t, made, "the name is taken")
	channel.Spec.Enabled = false
	channel, err = f.put(channel)
	f.ok(err)
	require.False(t, unheard().Fresh, "its only default channel is disabled")
	f.code(domain.CodeConflict, f.remove(channel))
	settings.DefaultChannels = nil
	_, err = f.s.SaveAlertSettings(f.ctx, settings)
	f.ok(err)
	f.ok(f.remove(channel))
	require.False(t, unheard().Fresh, "and gone")
	made, err = f.s.CreateDefaultReceiver(f.ctx, wanted(), "node")
	f.ok(err)
	require.False(t, made, "somebody has said who is told")
}
