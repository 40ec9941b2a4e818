package gormstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// A node waits for as long as its database is out of reach, and says a reason once.
func TestAwait(t *testing.T) {
	wrong := errors.New("access denied")
	for name, test := range map[string]struct {
		answers []error
		limit   time.Duration
		want    error
		opened  int
		told    []string
	}{
		"it answers":     {answers: []error{nil}, opened: 1},
		"it comes":       {answers: []error{syscall.ECONNREFUSED, syscall.ECONNREFUSED, nil}, opened: 3, told: []string{"its host refuses connections"}},
		"two reasons":    {answers: []error{syscall.ECONNREFUSED, syscall.ENOSPC, nil}, opened: 3, told: []string{"its host refuses connections", "its disk is full"}},
		"no waiting":     {answers: []error{syscall.ECONNREFUSED}, limit: -1, want: syscall.ECONNREFUSED, opened: 1},
		"too long":       {answers: []error{syscall.ECONNREFUSED, syscall.ECONNREFUSED, nil}, limit: 1500 * time.Millisecond, want: syscall.ECONNREFUSED, opened: 2, told: []string{"its host refuses connections"}},
		"another fault":  {answers: []error{wrong, nil}, want: wrong, opened: 1},
		"fault in a gap": {answers: []error{syscall.ECONNREFUSED, wrong}, want: wrong, opened: 2, told: []string{"its host refuses connections"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened, told := 0, []string(nil)
				err := gormstore.Await(t.Context(), gormstore.Awaiting{
					Open:  func(context.Context) error { opened++; return test.answers[opened-1] },
					Limit: test.limit, Log: slog.New(slog.DiscardHandler),
					Waits: func(reason string) { told = append(told, reason) },
				})
				require.ErrorIs(t, err, test.want)
				require.Equal(t, test.opened, opened)
				require.Equal(t, test.told, told)
			})
		})
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := gormstore.Await(ctx, gormstore.Awaiting{
			Open: func(context.Context) error { return syscall.ECONNREFUSED }, Waits: func(string) {}, Log: slog.New(slog.DiscardHandler),
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestFindingsThatRefuseADatabase(t *testing.T) {
	several := domain.Finding{Code: "multi_writer", Fatal: true}
	require.True(t, gormstore.Options{}.Refuses(several))
	require.False(t, gormstore.Options{AllowMultiWriter: true}.Refuses(several))
	require.True(t, gormstore.Options{AllowMultiWriter: true}.Refuses(domain.Finding{Code: "read_only", Fatal: true}))
	require.False(t, gormstore.Options{}.Refuses(domain.Finding{Code: "sync_binlog"}))
}

func TestASoundDatabaseIsAdmitted(t *testing.T) {
	o := gormstore.Options{Driver: "sqlite", DSN: t.TempDir() + "/carillon.db", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, gormstore.Migrate(t.Context(), o))
	require.NoError(t, gormstore.Admit(t.Context(), o))
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	defer s.Close()
	var log bytes.Buffer
	require.NoError(t, s.AdmitTables(t.Context(), o, slog.New(slog.NewTextHandler(&log, nil))))
	require.Equal(t, 1, strings.Count(log.String(), "msg=database kind=sqlite"), log.String())
}
