package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// maxRegistered and maxFrame are the most handlers and bytes of one registration.
const maxRegistered, maxFrame = 1000, 1 << 20

// namesOf are n names of handlers.
func namesOf(build string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%04d", build, i))
	}
	return out
}

// registers is joins that may be refused, with schemas of so many bytes.
func (f *fixture) registers(boot, digest string, schema int, handlers ...string) (domain.Instance, error) {
	f.t.Helper()
	p := store.RegisterInstanceParams{
		Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot, Handlers: handlers, Build: digest},
		Build:    domain.Build{Digest: digest, Version: digest, Handlers: handlers, Catalogue: []byte(digest)}, TTL: time.Minute,
	}
	for _, h := range handlers {
		p.Handlers = append(p.Handlers, domain.Handler{Name: h, InputSchema: []byte(`"` + strings.Repeat("s", schema) + `"`)})
	}
	return RegisterInstance(f.ctx, f.s, p)
}

// leaves ends an instance, longer ago than its build is present.
func (f *fixture) leaves(i domain.Instance) {
	f.t.Helper()
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
	f.ok(f.s.AgeInstance(f.ctx, i.ID, domain.BuildGrace+time.Second))
	f.tick()
}

func (f *fixture) knows(name string) bool {
	f.t.Helper()
	_, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, name)
	if domain.Is(err, domain.CodeNotFound) {
		return false
	}
	f.ok(err)
	return true
}

// testHandlersAreBounded: builds that come and go leave a bounded catalogue. What is in
// use stays, and when all is in use another build finds no room.
func testHandlersAreBounded(t *testing.T, f *fixture) {
	bound := func() (n int) {
		list, err := listHandlers(f, f.executor)
		f.ok(err)
		bytes := 0
		for _, h := range list {
			bytes += len(h.InputSchema)
		}
		require.LessOrEqual(t, len(list), store.MaxHandlers)
		require.LessOrEqual(t, bytes, store.MaxHandlerBytes)
		return len(list)
	}
	stays, err := f.registers("stays", "stays", 2, "stays")
	f.ok(err)
	kept, err := f.registers("kept", "kept", 2, "scheduled", "timed", "called", "unused")
	f.ok(err)
	f.job(func(s *domain.JobSpec) { s.Handler = "scheduled" })
	timed := f.timerJob(func(s *domain.JobSpec) { s.Handler = "timed" })
	f.timerJob(func(s *domain.JobSpec) { s.Handler = "called" }) // has no timer
	f.setOK(domain.TimerCreated, f.timer(timed, "1", f.now().Add(time.Hour), domain.TimerKeep))
	f.leaves(kept)
	for b := range 5 {
		digest := fmt.Sprintf("b%d", b)
		i, err := f.registers(digest, digest, 900, namesOf(digest, 900)...)
		f.ok(err)
		f.leaves(i)
		bound()
	}
	for name, want := range map[string]bool{"stays": true, "scheduled": true, "timed": true, "called": false, "unused": false, "b0-0000": false, "b4-0899": true} {
		require.Equal(t, want, f.knows(name), name)
	}

	// A build that is known comes back with the handlers that have left.
	back, err := f.registers("b0 again", "b0", 900, namesOf("b0", 900)...)
	f.ok(err)
	require.True(t, f.knows("b0-0000"))
	bound()

	// Bytes count like names, and what is defined anew counts with its new size.
	large, err := f.registers("large", "large", maxFrame-100, "l0")
	f.ok(err)
	for i := range 5 {
		large, err = f.registers("large", fmt.Sprintf("large%d", i), maxFrame-100, fmt.Sprintf("l%d", i+1))
		f.ok(err)
	}
	bound()
	f.leaves(large)

	// All handlers are in use. A registration with new handlers is refused, and a registration
	// without them is accepted.
	_, err = f.registers("full", "full", 2, namesOf("full", 1000)...)
	f.ok(err)
	bound()
	_, err = f.registers("more", "more", 2, namesOf("more", 1000)...)
	f.code(domain.CodeQuotaExceeded, err)
	require.ErrorContains(t, err, "at most 2000 handlers")
	require.False(t, f.knows("more-0000"))
	f.code(domain.CodeQuotaExceeded, f.s.DefineHandlers(f.ctx, f.tenant, f.executor, []domain.Handler{
		{Name: "stays", InputSchema: []byte(strings.Repeat("s", store.MaxHandlerBytes+1))},
	}))
	_, err = f.registers("another", "full", 2, namesOf("full", 1000)...)
	f.ok(err)
	f.leaves(back)
	_, err = f.registers("more", "more", 2, namesOf("more", 990)...)
	f.ok(err)
	bound()
	require.True(t, f.knows("stays"))
	f.leaves(stays)
}

// testHandlerPages: a page ends at its bytes, and names are those around one.
func testHandlerPages(t *testing.T, f *fixture) {
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, nil))
	var list []domain.Handler
	for _, name := range namesOf("h", 20) {
		list = append(list, domain.Handler{Name: name, InputSchema: []byte(strings.Repeat("s", 1000)), Calls: &domain.JobSpec{Handler: name}})
	}
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, list))
	p := store.ListHandlersParams{Tenant: f.tenant, Executor: f.executor, Limit: 10, Bytes: 2500}
	var names []string
	for more := true; more; {
		page, err := f.s.ListHandlers(f.ctx, p)
		f.ok(err)
		require.LessOrEqual(t, len(page.Items), 3)
		for _, h := range page.Items {
			names = append(names, h.Name)
			require.Len(t, h.InputSchema, 1000)
		}
		more, p.After = page.More, names[len(names)-1]
	}
	require.Equal(t, namesOf("h", 20), names)
	page, err := f.s.ListHandlers(f.ctx, store.ListHandlersParams{Tenant: f.tenant, Executor: f.executor, Limit: 15, NoSchemas: true})
	f.ok(err)
	require.Len(t, page.Items, 15)
	require.True(t, page.More)
	require.Nil(t, page.Items[0].InputSchema)
	names, err = f.s.ListHandlerNames(f.ctx, f.tenant, f.executor, "h-0010x", 4)
	f.ok(err)
	require.ElementsMatch(t, []string{"h-0009", "h-0010", "h-0011", "h-0012"}, names)
	names, err = f.s.ListHandlerNames(f.ctx, f.tenant, f.executor+1, "h-0010x", 4)
	f.ok(err)
	require.Empty(t, names)
}

// testLargestRequests: no statement is too long for the database if each list of a request has
// as many items as it may have.
func testLargestRequests(t *testing.T, f *fixture) {
	names := namesOf("handler", maxRegistered)
	_, err := f.registers("largest", "largest", 900, names...)
	f.ok(err)
	var handlers []domain.Handler
	for _, name := range namesOf("all", store.MaxHandlers-len(names)) {
		handlers = append(handlers, domain.Handler{Name: name, InputSchema: []byte(strings.Repeat("\x00", 6000))}) // grows where it is quoted
	}
	f.ok(f.s.DefineHandlers(f.ctx, f.tenant, f.executor, handlers))

	var digests []string
	var refused []domain.RefusedDeclaration
	for i := range 1000 {
		digests = append(digests, fmt.Sprintf("d%d", i))
		refused = append(refused, domain.RefusedDeclaration{Name: fmt.Sprint(i), Code: domain.CodeConflict, Message: strings.Repeat("m", 1024)})
	}
	f.settle(refused, digests...)
	_, err = f.s.ReadCatalogues(f.ctx, f.tenant, f.executor, digests)
	f.ok(err)
	f.ok(f.s.DropProposals(f.ctx, f.tenant, f.executor, namesOf("proposal", 70_000)))
	_, err = f.s.ListBusyBoots(f.ctx, f.tenant, f.executor, namesOf("boot", 70_000))
	f.ok(err)

	var jobs []store.NewJob
	for range 1000 {
		jobs = append(jobs, f.newJob(time.Hour, domain.JobEnabled))
	}
	for _, err := range f.s.CreateJobs(f.ctx, f.tenant, jobs) {
		f.ok(err)
	}
	j := f.timerJob(nil)
	set := make([]store.SetTimer, 0, domain.MaxTimerBatch)
	for i := range cap(set) {
		timer := f.timer(j, fmt.Sprint(i), f.now().Add(time.Hour), domain.TimerKeep)
		timer.Labels = []string{"a", fmt.Sprint(i)}
		set = append(set, timer)
	}
	var keys []string
	for i, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: set}) {
		f.ok(r.Err)
		keys = append(keys, fmt.Sprint(i))
	}
	f.cancelTimers(j, keys...)
}

// testHandlersRace: builds that come at once push out handlers of each other's without an
// error, and the next registration brings what they leave below the bound.
func testHandlersRace(t *testing.T, f *fixture) {
	var all sync.WaitGroup
	errs := make(chan error, 100)
	for g := range 4 {
		all.Go(func() {
			for n := range 5 {
				digest := fmt.Sprintf("g%d-%d", g, n)
				i, err := f.registers(digest, digest, 10, namesOf(digest, 300)...)
				if err == nil {
					err = LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped")
				}
				if err == nil {
					err = f.s.AgeInstance(f.ctx, i.ID, domain.BuildGrace+time.Second)
				}
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		f.ok(err)
	}
	_, err := f.registers("last", "last", 10, "last")
	f.ok(err)
	list, err := listHandlers(f, f.executor)
	f.ok(err)
	require.LessOrEqual(t, len(list), store.MaxHandlers)
	require.GreaterOrEqual(t, len(list), store.MaxHandlers-300)
}
