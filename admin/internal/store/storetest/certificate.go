package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testAuthorities(t *testing.T, s Store) {
	ctx := t.Context()
	none, err := s.ListAuthorities(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	now, err := s.Now(ctx)
	require.NoError(t, err)
	authority := func(epoch int, life time.Duration) domain.Authority {
		return domain.Authority{
			ID: ids.Next(), Epoch: epoch, Certificate: []byte{1, byte(epoch)}, SealedKey: []byte{2, byte(epoch)},
			CreatedAt: now, ExpiresAt: now.Add(life),
		}
	}
	first, second := authority(2, time.Hour), authority(3, 2*time.Hour)
	require.NoError(t, s.CreateAuthority(ctx, authority(1, -time.Second)))
	require.NoError(t, s.CreateAuthority(ctx, first))
	var won atomic.Int32
	race(4, func(i int) {
		one := second
		one.ID = ids.Next()
		if i == 0 {
			one.ID = second.ID
		}
		err := s.CreateAuthority(ctx, one)
		if err == nil {
			won.Add(1)
			return
		}
		if !domain.Is(err, domain.CodeConflict) {
			t.Error(err)
		}
	})
	require.EqualValues(t, 1, won.Load(), "of several nodes one makes the next")
	list, err := s.ListAuthorities(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2, "the one that has expired is not believed")
	require.Equal(t, 3, list[0].Epoch)
	require.Equal(t, first, list[1])
}

func testDenials(t *testing.T, f *fixture) {
	began := f.now()
	deny := func(kind domain.DenialKind, subject string) domain.Denial {
		d, err := f.s.CreateDenial(f.ctx, domain.Denial{
			ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Kind: kind, Subject: subject, Label: "one", Reason: "stolen", CreatedBy: "anna",
		})
		f.ok(err)
		require.False(t, d.CreatedAt.Before(began))
		return d
	}
	boot, serial := deny(domain.DenyInstance, "b00"), deny(domain.DenyCertificate, "5e")
	require.Equal(t, boot, deny(domain.DenyInstance, "b00"), "once is enough")
	list, err := f.s.ListDenials(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, []domain.Denial{serial, boot}, list)

	ask := func(by *fixture, tenant domain.TenantID, executor domain.ExecutorID, subjects ...string) *domain.Denial {
		out, err := by.s.FindDenials(by.ctx, []store.DenialQuery{
			{Tenant: f.tenant, Executor: f.executor, Subjects: []string{"b01"}}, {Tenant: tenant, Executor: executor, Subjects: subjects},
			{Tenant: f.tenant, Executor: f.executor}, {Tenant: f.tenant, Executor: f.executor, Subjects: []string{"5e"}},
		})
		f.ok(err)
		require.Equal(t, []*domain.Denial{nil, nil, &serial}, []*domain.Denial{out[0], out[2], out[3]}, "who is asked about along with it")
		return out[1]
	}
	require.Equal(t, &boot, ask(f, f.tenant, f.executor, "b00"))
	require.Equal(t, &serial, ask(f, f.tenant, f.executor, "another boot", "5e"))
	require.Nil(t, ask(f, f.tenant, f.executor, "another boot", "5f"))

	now, since, err := f.s.ListDenialsSince(f.ctx, began)
	f.ok(err)
	require.False(t, now.Before(serial.CreatedAt))
	require.Subset(t, since, []domain.Denial{boot, serial})
	_, since, err = f.s.ListDenialsSince(f.ctx, now.Add(time.Second))
	f.ok(err)
	require.Empty(t, since)

	// Another tenant's, and another executor's, are not concerned.
	b := newFixture(t, f.s)
	require.Nil(t, ask(b, b.tenant, f.executor, "b00"))
	require.Nil(t, ask(b, f.tenant, b.executor, "b00"))
	_, err = b.s.CreateDenial(b.ctx, domain.Denial{ID: ids.Next(), TenantID: b.tenant, Executor: f.executor, Kind: domain.DenyInstance, Subject: "b00"})
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, b.s.DeleteDenial(b.ctx, b.tenant, f.executor, boot.ID))
	f.code(domain.CodeNotFound, b.s.DeleteDenial(b.ctx, f.tenant, b.executor, boot.ID))
	f.ok(f.s.DeleteDenial(f.ctx, f.tenant, f.executor, boot.ID))
	require.Nil(t, ask(f, f.tenant, f.executor, "b00"))
}

// testDeniedInstances: they are off the list at once, while what they run is left
// to the leases that they had, which nobody renews.
func testDeniedInstances(t *testing.T, f *fixture) {
	online := func(want int) {
		t.Helper()
		n, err := f.s.CountOnline(f.ctx, f.tenant, f.executor)
		f.ok(err)
		require.Equal(t, want, n)
		list, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant})
		f.ok(err)
		require.Equal(t, want, list[0].Online)
		require.Equal(t, want, list[0].Total)
	}
	other, third := f.register("boot-other", time.Minute).ID, f.register("boot-third", time.Minute).ID
	online(3)
	before, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	_, err = f.s.CreateDenial(f.ctx, domain.Denial{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Kind: domain.DenyInstance, Subject: before.BootID})
	f.ok(err)
	online(2)
	b := newFixture(t, f.s)
	f.ok(b.s.MarkDenied(f.ctx, b.tenant, b.executor, []domain.InstanceID{other}))
	f.ok(f.s.MarkDenied(f.ctx, f.tenant, f.executor, nil))
	online(2)
	f.ok(f.s.MarkDenied(f.ctx, f.tenant, f.executor, []domain.InstanceID{other}))
	online(1)

	after, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.False(t, after.GoneAt.IsZero())
	require.Equal(t, "denied by an administrator", after.GoneReason)
	require.Equal(t, before.LeaseUntil, after.LeaseUntil)
	_, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Slots: 5}, {ID: third, Slots: 5}}, time.Minute)
	f.ok(err)
	require.Equal(t, []domain.InstanceID{third}, renewed)
}

func testParkedInstances(t *testing.T, f *fixture) {
	other := newFixture(t, f.s)
	all := []domain.InstanceID{f.instance, other.instance}
	renew := func(parked bool) {
		_, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Slots: 5, Parked: parked}, {ID: other.instance, Slots: 5, Parked: parked}}, time.Minute)
		f.ok(err)
		require.Len(t, renewed, 2)
	}
	wanted := func() []domain.InstanceID {
		out, err := f.s.ListWanted(f.ctx, all)
		f.ok(err)
		return out
	}
	f.ok(f.s.WakeInstances(f.ctx, []domain.ExecutorID{f.executor}))
	require.Empty(t, wanted(), "nobody is parked")
	renew(true)
	require.Empty(t, wanted(), "nobody is wanted")
	f.ok(f.s.WakeInstances(f.ctx, nil))
	f.ok(f.s.WakeInstances(f.ctx, []domain.ExecutorID{f.executor}))
	f.ok(f.s.WakeInstances(f.ctx, []domain.ExecutorID{f.executor}))
	require.Equal(t, []domain.InstanceID{f.instance}, wanted())
	renew(true)
	require.Equal(t, []domain.InstanceID{f.instance}, wanted(), "until it is awake")
	renew(false)
	renew(true)
	require.Empty(t, wanted(), "that was before it was parked again")
	none, err := f.s.ListWanted(f.ctx, nil)
	f.ok(err)
	require.Empty(t, none)
}

// testRefusingInstances: what an instance said last holds over its sessions.
func testRefusingInstances(t *testing.T, f *fixture) {
	refusing := func() bool {
		i, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
		f.ok(err)
		return i.Refusing
	}
	renew := func(refuses bool) {
		_, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Slots: 5, Refusing: refuses}}, time.Minute)
		f.ok(err)
		require.Len(t, renewed, 1)
	}
	require.False(t, refusing())
	renew(true)
	require.True(t, refusing())
	f.register("boot-1", time.Minute)
	require.True(t, refusing(), "a new session of the process has not said anything yet")
	renew(false)
	require.False(t, refusing())
}
