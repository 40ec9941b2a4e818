package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *fakeServer) maintenanceRoutes(mux *http.ServeMux) {
	const of = `{"id":"9","kind":%q,"subject":%s,"mode":"wait","reason":"new disks","by":"alice","since":"2026-11-21T03:00:00.000Z","until":null,"active":true,"endedBy":""}`
	answer := func(kind, subject string) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
			fmt.Fprintf(w, of, kind, subject)
		}
	}
	for path, say := range map[string]func(http.ResponseWriter, *http.Request, map[string]any){
		"/cluster/maintenance": answer("cluster", "null"), "/maintenance": answer("tenant", `{"id":"1","name":"acme"}`),
		"/executors/{id}/maintenance": answer("executor", `{"id":"5","name":"shop"}`),
	} {
		s.route(mux, "PUT "+path, say)
		s.route(mux, "DELETE "+path, say)
	}
	s.route(mux, "GET /maintenance", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[`+of+`],"nextCursor":null}`, "cluster", "null")
	})
	instance := `{"id":"41","name":"shop-1","state":"draining","running":2,"slots":4}`
	s.route(mux, "PUT /instances/41/drain", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, instance) })
	s.route(mux, "DELETE /instances/41/drain", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, instance) })
	s.route(mux, "DELETE /instances/41", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"instance":`+instance+`,"denialId":"12","leaseUntil":"2026-11-21T04:00:00.000Z","runs":[{"id":"70","jobName":"close-day","state":"running","then":"lost"}]}`)
	})
}

func TestMaintenanceCommands(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"on", "--for", "2h", "--reason", "new disks"}, "tenant acme wait"},
		{[]string{"on", "--executor", "shop", "--mode", "skip"}, "executor shop wait"},
		{[]string{"on", "--cluster"}, "cluster wait"},
		{[]string{"off"}, "tenant acme"}, {[]string{"off", "--cluster"}, "cluster"}, {[]string{"off", "--executor", "shop"}, "executor shop"},
		{[]string{"show"}, "cluster wait"},
	} {
		r := term.run(append([]string{"maintenance"}, c.args...)...)
		require.Equal(t, 0, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, spaced(r.stdout), c.want, c.args)
		require.Contains(t, r.stdout, "new disks")
	}
	require.Equal(t, "wait", server.lastBody("PUT /maintenance")["mode"])
	for _, wrong := range [][]string{{"on", "--mode", "stop"}, {"on", "--for", "0s"}, {"on", "--cluster", "--executor", "shop"}, {"on", "--for", "1h", "--until", "2026-11-21T04:00:00Z"}} {
		require.Equal(t, 2, term.run(append([]string{"maintenance"}, wrong...)...).code, "%v", wrong)
	}
}

func TestDrainCommands(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("executor", "drain", "41")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "2 of its slots are busy")
	require.Contains(t, spaced(r.stdout), "41 shop-1 draining 2/4")
	require.Equal(t, 0, term.run("executor", "undrain", "41").code)
	require.Equal(t, 2, term.run("executor", "remove", "41").code, "nobody there to ask")
	r = term.run("executor", "remove", "41", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "70 close-day running lost")
	require.True(t, strings.Contains(r.stderr, "denial 12"), r.stderr)
}
