package gateway

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

var (
	refusedAt   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	refusedFrom = netip.MustParseAddr("192.0.2.7")
)

func refused(executor string, code domain.Code) error {
	return fmt.Errorf("greet: %w", &refusedError{domain.Errorf(code, "no to %s", executor), &proto.ClientHello{Executor: executor, InstanceName: "a"}, "bad_token"})
}

func TestRefusalsCountBySubject(t *testing.T) {
	r := newRefusals()
	r.strayed(refusedFrom, refused("shop", domain.CodeUnauthenticated), refusedAt)
	r.strayed(refusedFrom, refused("till", domain.CodeUnauthenticated), refusedAt.Add(time.Second))
	r.strayed(refusedFrom, refused("shop", domain.CodeUnauthenticated), refusedAt.Add(time.Minute))
	list := r.newest()
	require.Len(t, list, 2)
	require.Equal(t, domain.Refusal{
		Code: "bad_token", Message: "greet: no to shop", Remote: "192.0.2.7", Executor: "shop", Instance: "a",
		Times: 2, FirstAt: refusedAt, LastAt: refusedAt.Add(time.Minute),
	}, list[0])
	require.Equal(t, "till", list[1].Executor)
}

func TestRefusalsLeaveOutWhatIsNobodysFault(t *testing.T) {
	r := newRefusals()
	r.strayed(refusedFrom, fmt.Errorf("read preface: EOF"), refusedAt)
	r.strayed(refusedFrom, refused("shop", domain.CodeInternal), refusedAt)
	require.Empty(t, r.newest())
}

func TestRefusalsAreBounded(t *testing.T) {
	r := newRefusals()
	for i := range 3 * maxRefusals {
		r.note(refusedFrom, "bad_token", strings.Repeat("编", maxRefusalText), fmt.Sprint(i, strings.Repeat("钟", maxRefusalName)), "", refusedAt.Add(time.Duration(i)))
	}
	list := r.newest()
	require.Len(t, list, maxRefusals)
	require.True(t, strings.HasPrefix(list[0].Executor, fmt.Sprint(3*maxRefusals-1)))
	require.LessOrEqual(t, len(list[0].Executor), maxRefusalName)
	require.LessOrEqual(t, len(list[0].Message), maxRefusalText)
	require.True(t, utf8.ValidString(list[0].Executor+list[0].Message))
}
