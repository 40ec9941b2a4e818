package api

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

// bounded has the bounds of the operations that compute for more than some milliseconds, wait
// for another host, or read and build more than some hundred KiB.
var bounded = map[string]string{
	"apply-documents": "computes", "plan-documents": "computes", "backfill-job": "computes", "create-calendar": "computes", "create-job": "computes", "create-jobs": "computes",
	"diff-script": "computes, large", "explain-fire": "computes", "explain-run": "computes", "get-job-declaration": "computes", "give-job-back": "computes",
	"import-calendar": "computes", "count-fires": "computes", "next-fires": "computes", "preview-schedule": "computes",
	"update-calendar": "computes", "update-job": "computes", "restore-job": "computes", "put-job": "computes", "try-callback": "reaches",

	"get-calendar": "large", "get-executor": "large", "get-run": "large", "get-run-log": "large", "get-script": "large", "get-script-version": "large",
	"list-all-instances":   "large",
	"get-calendar-version": "large", "list-calendar-versions": "large", "list-calendars": "large", "list-handlers": "large", "list-instances": "large",
	"list-job-documents": "large", "list-job-events": "large", "list-jobs": "large", "list-proposals": "large", "list-revisions": "large", "list-run-parts": "large", "list-script-versions": "large", "list-scripts": "large", "list-runs": "large", "list-timers": "large",
}

// boundedElsewhere have a bound of their own room.
var boundedElsewhere = map[string]string{
	"change-password": "auth.hasher", "create-user": "auth.hasher", "login": "auth.hasher", "update-user": "auth.hasher",
	"call-handler": "web.waits, jsonschema", "get-call": "web.waits", "get-run": "web.waits", "run-job": "web.waits, jsonschema",
	"get-run-log": "web.waits", "download-run-log": "web.budgets.sending",
	"reschedule-timer": "jsonschema", "set-timer": "jsonschema", "set-timers": "web.Server.Compute",
}

// outbound are what the API asks other rooms that waits for another host.
var outbound = []string{"deps.Publish(", ".TryChannel(", "handler.Try("}

func TestOperationsThatComputeOrReachOthersAreBounded(t *testing.T) {
	a := New(describedDeps())
	require.Equal(t, bounded, a.Bounds())
	known := map[string]bool{}
	operations(a.Document(), func(_, _ string, op *huma.Operation) { known[op.OperationID] = true })
	for id := range boundedElsewhere {
		require.True(t, known[id], id)
		require.NotContains(t, bounded[id], "computes", id)
	}

	calls, reaches, parts := 0, 0, 0
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if !strings.HasPrefix(path, "api") && !strings.HasPrefix(path, "addon") {
			return err
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		parts += strings.Count(string(text), "a.Compute(ctx, ")
		for _, call := range outbound {
			calls += strings.Count(string(text), call)
		}
		return err
	}))
	for _, how := range bounded {
		if strings.Contains(how, "reaches") {
			reaches++
		}
	}
	require.Equal(t, 1, parts, "set-timers checks its timers in turns")
	require.Equal(t, reaches, calls, "each call of another host is in an operation with Reaches")
}
