package declare

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// as is the shop as another executor, of this tenant or of another one.
func (s *shop) as(tenant domain.TenantID, executor string) *shop {
	s.t.Helper()
	other := *s
	other.key = store.ExecutorKey{Tenant: tenant, Executor: domain.ExecutorID(s.ids.Next())}
	other.d = other.declarer()
	require.NoError(s.t, s.CreateExecutor(s.t.Context(), domain.Executor{ID: other.key.Executor, TenantID: tenant, Name: executor}))
	return &other
}

// What the API refuses as a name is refused here as well: nobody could edit or find
// such a job, or it would take the name by which the server finds one of its own.
func TestDeclaredNames(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	own := func(name string) string {
		prefix, _, _ := strings.Cut(name, ":")
		return `must not begin with "` + prefix + `:": the server gives such names to the jobs that the ` + prefix + "s of handlers belong to; choose another one"
	}
	n := 0
	for name, want := range map[string]string{
		"":                        "must not be empty",
		"  ":                      "must not be empty",
		strings.Repeat("x", 129):  "must have at most 128 bytes",
		"a\u2028b":                "must not contain control characters or line breaks",
		"a\u202eb":                "must not contain control characters or line breaks",
		"a\nb":                    "must not contain control characters or line breaks",
		" a":                      "must not begin or end with a space",
		"call:shop/close-day":     own("call:"),
		"callback:shop/close-day": own("callback:"),
		"timer:billing/anything":  own("timer:"),
	} {
		for _, ownership := range []string{"code", "", "propose", "console"} {
			n++
			_, notices := s.register(fmt.Sprint("1.", n), daily(name, "1", ownership))
			require.Len(t, notices, 1, "%q", name)
			require.Equal(t, []string{"validation_failed", "job.name: " + want}, []string{notices[0].Code, notices[0].Message}, "%q", name)
			s.gone(name)
		}
	}
	_, notices := s.register("2", daily("timers: 全部", "1", "code"))
	require.Empty(t, notices)
}

// lateJobs does not find a job the first time: it is made at the same moment.
type lateJobs struct {
	Store
	looked bool
}

func (j *lateJobs) FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (store.JobView, error) {
	if !j.looked {
		j.looked = true
		return store.JobView{}, domain.Errorf(domain.CodeNotFound, "no such job")
	}
	return j.Store.FindJobByName(ctx, tenant, name)
}

// Names of jobs are unique in the tenant: the second executor hears whose the name
// is and what to do, and that of another tenant may have it too.
func TestAJobNameIsTakenOncePerTenant(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		_, notices := s.register("1", daily("close", "1", "code"))
		require.Empty(t, notices)
		taken := func(o *shop, hour string) {
			t.Helper()
			_, notices := o.register("1", daily("close", hour, "code"))
			refused := o.refused()
			require.Len(t, notices, 1)
			require.Equal(t, []string{"close", "conflict"}, []string{notices[0].Subject, notices[0].Code})
			require.Equal(t, `the executor "shop" has a job "close" already, and names of jobs are unique in the tenant: `+
				"give this one another name, or rename or delete that one", notices[0].Message)
			require.Len(t, refused, 1, "the executor's page says so too")
			require.Equal(t, notices[0].Message, refused[0].Message)
		}
		billing := s.as(s.key.Tenant, "billing")
		taken(billing, "2")
		require.Equal(t, s.key.Executor, s.job("close").Executor)
		require.Equal(t, "0 0 1 * * *", s.job("close").Spec.Schedule.Expr, "the job is as its own executor declares it")

		// Both at the same moment: who is later hears the same.
		storage := s.as(s.key.Tenant, "storage")
		storage.d.opt.Store = &lateJobs{Store: storage.d.opt.Store}
		taken(storage, "3")

		// Another instance of the same application that is quicker is no refusal.
		s.d.opt.Store = &lateJobs{Store: s.d.opt.Store}
		_, notices = s.register("2", daily("close", "1", "code"))
		require.Empty(t, notices)

		tenant := domain.TenantID(s.ids.Next())
		require.NoError(t, s.CreateTenant(t.Context(), domain.Tenant{ID: tenant, Name: "other"}))
		elsewhere := s.as(tenant, "billing")
		_, notices = elsewhere.register("1", daily("close", "4", "code"))
		require.Empty(t, notices, "names of other tenants are nobody's business")
		require.Equal(t, "0 0 4 * * *", elsewhere.job("close").Spec.Schedule.Expr)
	})
}

// The advice of the refusal takes effect without another registration.
func TestANameThatIsFreeAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		s.register("1", daily("close", "1", "code"), daily("open", "1", ""))
		billing, storage := s.as(s.key.Tenant, "billing"), s.as(s.key.Tenant, "storage")
		billing.register("1", daily("close", "2", "code"))
		storage.register("1", daily("open", "2", "code"))
		require.NoError(t, billing.d.Sweep(t.Context()))
		require.Equal(t, s.key.Executor, s.job("close").Executor)
		_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: s.key.Tenant, ID: s.job("close").ID, State: domain.JobDeleted})
		require.NoError(t, err)
		s.edit("open", func(j *domain.JobSpec) { j.Name = "opening" })
		require.NoError(t, billing.d.Sweep(t.Context()))
		require.NoError(t, storage.d.Sweep(t.Context()))
		require.Equal(t, billing.key.Executor, s.job("close").Executor)
		require.Equal(t, storage.key.Executor, s.job("open").Executor)
		require.Empty(t, billing.refused())
		keys, err := s.ListUnsettled(t.Context(), 100)
		require.NoError(t, err)
		require.Empty(t, keys)
	})
}
