package session

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// TestATenantThatMoved is followed to its new cell, and back.
func TestATenantThatMoved(t *testing.T) {
	var here, there atomic.Pointer[[]string] // where each of them sends executors to; nil: it takes them
	refuse := func(to *atomic.Pointer[[]string]) func(*proto.ClientHello) *proto.Error {
		return func(*proto.ClientHello) *proto.Error {
			if list := to.Load(); list != nil {
				return &proto.Error{Code: "moved", Message: "it lives elsewhere", Addresses: *list}
			}
			return nil
		}
	}
	old := startAdmin(t, &fakeadmin.Admin{Node: "old", Refuse: refuse(&here)})
	other := startAdmin(t, &fakeadmin.Admin{Node: "new", Refuse: refuse(&there)})
	here.Store(&[]string{other.Address()})
	f := startFleet(t, to(old.Address()))
	link := f.events.waitUp(t, 1)[0]
	require.Equal(t, "new", link.Node())
	require.NoError(t, f.Health())

	here.Store(nil)
	there.Store(&[]string{old.Address()})
	link.fail(errSilent)
	f.events.wait(t, "the session to the old cell", func() bool {
		for l := range f.events.up {
			if l.Node() == "old" {
				return true
			}
		}
		return false
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.seeds, 2, "an address is tried by one target")
}
