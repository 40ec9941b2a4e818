package main

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (s *fakeServer) fireRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /fires", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"from":"2026-11-30T02:00:00.000Z","to":"2026-11-30T04:00:00.000Z","bucket":"1h","fires":3,"jobs":2,"unpredicted":1,
			"items":[{"at":"2026-11-30T02:00:00.000Z","fires":3,"jobs":2},{"at":"2026-11-30T03:00:00.000Z","fires":0,"jobs":0}],
			"first":[{"jobId":"1","jobName":"close-day","executor":{"id":"9","name":"shop"},"fires":2,"at":["2026-11-30T02:00:00.000Z"]}]}`)
	})
	s.route(mux, "POST /schedules/preview", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"fires":[{"at":"2026-11-21T18:00:00.000Z","zoned":"2026-11-22T02:00:00+08:00","clashes":{"sameSecond":2,"sameMinute":3}}],"neverFires":false,"text":{"en":"","zh":""},"warnings":[]}`)
	})
}

func TestJobFires(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("job", "fires", "--from", "2026-11-30T02:00:00Z", "--to", "2026-11-30T04:00:00Z", "--executor", "shop")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "FROM                       FIRES   JOBS\n2026-11-30T02:00:00.000Z       3      2\n\nFIRST                      FIRES   EXECUTOR   JOB\n2026-11-30T02:00:00.000Z       2   shop       close-day\n", r.stdout)
	require.Contains(t, r.stderr, "2 jobs fire 3 times from 2026-11-30T02:00:00.000Z to 2026-11-30T04:00:00.000Z.\n1 of them is not named: --limit names up to 200.\nNot counted: 1 job whose")
	require.Equal(t, "executor=shop&from=2026-11-30T02%3A00%3A00.000Z&to=2026-11-30T04%3A00%3A00.000Z", server.queries["GET /fires"])
	require.Equal(t, 0, term.run("job", "fires", "--from", "02:00", "--to", "01:59", "-o", "json").code)
	q, err := url.ParseQuery(server.queries["GET /fires"])
	require.NoError(t, err)
	from, err := time.Parse(time.RFC3339, q.Get("from"))
	require.NoError(t, err)
	to, err := time.Parse(time.RFC3339, q.Get("to"))
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour-time.Minute, to.Sub(from))
	require.Equal(t, 2, term.run("job", "fires", "--to", "soon").code)

	r = term.run("job", "clashes", "0 2 * * *", "--tz", "Asia/Shanghai")
	require.Equal(t, "2026-11-22T02:00:00+08:00 same second: 2, same minute: 3\n", r.stdout, r.stderr)
	require.Equal(t, map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"}, server.bodies["POST /schedules/preview"]["schedule"])
}
