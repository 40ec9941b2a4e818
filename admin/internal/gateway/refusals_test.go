package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

func all(g *Gateway) (list []domain.Refusal) {
	_, list = g.admission.takeRefusals(10 * maxPending)
	return list
}

func quietGateway(node string) *Gateway {
	return New(Options{NodeID: node, Logger: slog.New(slog.DiscardHandler)})
}

func TestRefusalsCountBySubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := quietGateway("node-1"), time.Now()
		r.refuser.refused(refusedFrom, refused("shop", domain.CodeUnauthenticated))
		time.Sleep(time.Second)
		r.refuser.refused(refusedFrom, refused("till", domain.CodeUnauthenticated))
		time.Sleep(time.Minute)
		r.refuser.refused(refusedFrom, refused("shop", domain.CodeUnauthenticated))
		list := all(r)
		require.Len(t, list, 2)
		require.Equal(t, domain.Refusal{
			Code: "bad_token", Message: "greet: no to shop", Remote: "192.0.2.7", Executor: "shop", Instance: "a", Node: "node-1",
			Times: 2, FirstAt: began, LastAt: time.Now(),
		}, list[0])
		require.Equal(t, "till", list[1].Executor)
		require.Empty(t, all(r), "what was handed over is counted from anew")
		require.EqualValues(t, 3, r.Stats().Refused)
	})
}

func TestRefusalsLeaveOutWhatIsNobodysFault(t *testing.T) {
	r := quietGateway("")
	r.refuser.refused(refusedFrom, fmt.Errorf("read preface: EOF"))
	r.refuser.refused(refusedFrom, refused("shop", domain.CodeInternal))
	require.Empty(t, all(r))
	require.EqualValues(t, 2, r.Stats().Dropped)
	require.Zero(t, r.Stats().Refused)
}

// TestOneAddressMayNotNameWithoutEnd: neither at once, nor little by little.
func TestOneAddressMayNotNameWithoutEnd(t *testing.T) {
	r := quietGateway("")
	subjects, times := map[string]bool{}, 0
	for i := range 10 * maxNames {
		r.admission.noteRefusal(refusedFrom, "bad_token", strings.Repeat("编", maxRefusalText), fmt.Sprint(i, strings.Repeat("钟", maxRefusalName)), "", refusedAt)
		for _, one := range all(r) {
			subjects[one.Executor] = true
			times += one.Times
			require.LessOrEqual(t, len(one.Executor), maxRefusalName)
			require.LessOrEqual(t, len(one.Message), maxRefusalText)
			require.True(t, utf8.ValidString(one.Executor+one.Message))
		}
	}
	require.Len(t, subjects, maxNames+1)
	require.True(t, subjects[""], "those beyond have no name")
	require.Equal(t, 10*maxNames, times, "and none is left out")
	r.admission.noteRefusal(netip.MustParseAddr("192.0.2.8"), "bad_token", "", "shop", "", refusedAt)
	require.Equal(t, "shop", all(r)[0].Executor, "others are named")
	r.admission.noteRefusal(refusedFrom, "bad_token", "", "new", "", refusedAt.Add(namesFor))
	require.Equal(t, "new", all(r)[0].Executor)
}

// TestManyAddressesAreBounded: many refusals are no more than a few rows.
func TestManyAddressesAreBounded(t *testing.T) {
	r := quietGateway("")
	from := refusedFrom
	for range 20 * maxPending {
		from = from.Next()
		r.admission.noteRefusal(from, "bad_token", "no", "shop", "", refusedAt)
		r.admission.noteRefusal(from, "flood", "no", "shop", "", refusedAt)
	}
	require.LessOrEqual(t, len(r.admission.history.records), maxUnauthenticated)
	list := all(r)
	require.Len(t, list, maxPending+2, "and one for each code")
	times := map[string]int{}
	for _, one := range list {
		times[one.Code] += one.Times
	}
	require.Equal(t, map[string]int{"bad_token": 20 * maxPending, "flood": 20 * maxPending}, times)
	require.Empty(t, list[maxPending].Remote+list[maxPending].Executor)
}

type book struct {
	mu    sync.Mutex
	err   error          // guarded by mu
	sizes []int          // guarded by mu
	times map[string]int // guarded by mu
}

// read is what was written so far.
func (b *book) read() (sizes []int, times map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sizes), maps.Clone(b.times)
}

func (b *book) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *book) NoteRefusals(_ context.Context, list []domain.Refusal, keep int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = append(b.sizes, len(list))
	if b.err != nil {
		return b.err
	}
	for _, one := range list {
		b.times[one.Code] += one.Times
	}
	return nil
}

func TestRefusalsAreWrittenALittleAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{times: map[string]int{}, err: errors.New("no database")}
		g := New(Options{NodeID: "node-1", Refusals: b, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { g.refuser.run(ctx); close(ended) }()
		time.Sleep(10*noteEvery + noteEvery/2) // between two of its looks
		sizes, times := b.read()
		require.Empty(t, sizes, "nobody was turned away, nothing is written")
		require.Empty(t, times)

		from := refusedFrom
		for range 5 * maxPending {
			from = from.Next()
			g.admission.noteRefusal(from, "bad_token", "no", "shop", "", time.Now())
		}
		g.admission.mu.Lock()
		for range 7 {
			g.admission.closeUnheardLocked()
		}
		g.admission.mu.Unlock()
		time.Sleep(5 * noteEvery)
		sizes, times = b.read()
		require.Equal(t, []int{noteMax, noteMax, noteMax, noteMax, noteMax}, sizes, "however many there are")
		require.Empty(t, times)
		b.fail(nil)
		time.Sleep(time.Hour)
		sizes, times = b.read()
		require.Equal(t, map[string]int{"bad_token": 5 * maxPending, "unheard": 7}, times, "what could not be written is written later")
		require.Len(t, sizes, 5+(maxPending+2+noteMax-1)/noteMax)

		g.admission.noteRefusal(from, "flood", "no", "shop", "", time.Now())
		cancel()
		<-ended
		_, times = b.read()
		require.Equal(t, 1, times["flood"], "a node that stops writes down what it has")
	})
}
