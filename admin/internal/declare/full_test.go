package declare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/proto"
)

// When the definitions of present builds do not fit together, their applications are told
// the limit, and the chore goes on. When one of them has left, the others are applied.
func TestDefinitionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		large := func(version string) (domain.Instance, []*proto.Notice) {
			catalogue, err := gproto.Marshal(&proto.Register{AppVersion: version, Handlers: []*proto.Handler{{
				Name: "of " + version, InputSchema: []byte(`"` + strings.Repeat("s", proto.MaxFrame-1000) + `"`), Jobs: []*proto.JobDeclaration{daily("job "+version, "1", "code")},
			}}})
			require.NoError(t, err)
			// Without handlers of its own it passes the bound of registrations, as one does
			// whose handlers were there with smaller schemas.
			i, err := storetest.RegisterInstance(t.Context(), s, store.RegisterInstanceParams{
				TTL: time.Minute,
				Instance: domain.Instance{
					ID: domain.InstanceID(s.ids.Next()), TenantID: s.key.Tenant, Executor: s.key.Executor, BootID: version, Name: version, Build: "build " + version,
				},
				Build: domain.Build{Digest: "build " + version, Version: version, Handlers: []string{"of " + version}, Catalogue: catalogue},
			})
			require.NoError(t, err)
			return i, s.d.Declare(t.Context(), s.key.Tenant, s.key.Executor, "build "+version)
		}
		var last domain.Instance
		for n := range 9 {
			i, notices := large(fmt.Sprint(n))
			if last = i; n < 8 {
				require.Empty(t, notices)
				continue
			}
			require.Len(t, notices, 1)
			require.Equal(t, string(domain.CodeQuotaExceeded), notices[0].Code)
			require.Contains(t, notices[0].Message, "at most 2000 handlers, and 8388608 bytes")
			require.NotContains(t, notices[0].Message, "tries again")
		}
		require.NoError(t, s.d.Sweep(t.Context()), "it is no fault of the chore")
		s.gone("job 8")
		s.leave("8", last)
		require.NotNil(t, s.job("job 7"))
	})
}
