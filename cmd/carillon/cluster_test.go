package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *fakeServer) clusterRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /cluster", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"now":"2026-11-21T04:00:00.000Z","zonesDiffer":true,
			"database":{"kind":"mariadb","version":"10.11.19-MariaDB","role":"primary","readOnly":false,"latencyMs":0.42,
				"findings":[{"code":"not_durable","fatal":false,"message":"innodb_flush_log_at_trx_commit is 2"}],
				"group":{"kind":"galera","state":"synced","quorum":false,"writer":"u1","conflicts":2,"waiting":7,"paused":0.031,"members":[
					{"id":"u1","address":"10.0.0.1:3306","state":"synced","role":"writer","current":true},
					{"id":"","address":"10.0.0.2:3306","state":"","role":"","current":false}]}},
			"clock":{"held":true,"heldAt":"2026-11-21T03:00:00.000Z","jumpMs":300000},
			"history":{"held":true,"heldAt":"2026-11-21T03:00:00.000Z","reason":"its history ends at 0:5, and it was at 0:9 before","epoch":"0"},
			"nodes":[
				{"id":"1","name":"a","bootId":"b1","version":"1.0","state":"live","connected":true,"startedAt":"2026-11-21T03:00:00.000Z","heartbeatAgeMs":120,"clockSkewMs":-3,"sessions":2,"partitions":32,"zoneRules":{"source":"/usr/share/zoneinfo","version":"2026a","digest":"79957fa62d10"}},
				{"id":"2","name":"b","bootId":"b2","version":"1.0","state":"live","connected":false,"startedAt":"2026-11-21T03:00:00.000Z","heartbeatAgeMs":1700,"sessions":null,"partitions":1,"planningLagMs":2500}],
			"partitions":[
				{"id":0,"state":"held","nodeName":"a","term":"3","until":"2026-11-21T04:00:02.000Z","nextFireAt":"2026-11-21T04:00:30.000Z"},
				{"id":1,"state":"free","nodeName":"","term":"0"}]}`)
	})
	s.route(mux, "POST /cluster/accept-history", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		if s.accepted {
			refuse(w, 409, "conflict", "no node has found that the database lost anything")
			return
		}
		s.accepted = true
		fmt.Fprint(w, `{"epoch":"1"}`)
	})
	s.route(mux, "POST /cluster/confirm-clock", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"confirmedAt":"2026-11-21T04:00:00.000Z"}`)
	})
}

func TestCluster(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("cluster")
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 7)
	require.Equal(t, []string{
		"database mariadb 10.11.19-MariaDB, primary, 0.4 ms away",
		"database cluster galera, synced, 2 servers known; 2 conflicts, 7 transactions waiting, held back 3.1 % of the time",
		"  server 10.0.0.1:3306, synced, writer, this node's",
		"  server 10.0.0.2:3306",
	}, lines[:4])
	require.Contains(t, r.stderr, "not with the majority")
	require.Equal(t, "1 a live 32 0 ms 2 120 ms ago -3 ms 1.0", spaced(lines[5]))
	require.Equal(t, "2 b disconnected 1 2.5 s - 1.7 s ago 0 ms 1.0", spaced(lines[6]))
	require.Contains(t, r.stderr, "innodb_flush_log_at_trx_commit is 2")
	require.Contains(t, r.stderr, "leapt by 5 m")
	require.Contains(t, r.stderr, "nodes have different rules of time zones")
	require.Contains(t, r.stderr, "no node plans 1 of 2 partitions")

	require.Contains(t, r.stderr, "its history ends at 0:5")

	r = term.run("cluster", "accept-history")
	require.Equal(t, 2, r.code, "nobody there to ask")
	r = term.run("cluster", "accept-history", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "epoch 1 begins")
	r = term.run("cluster", "accept-history", "--yes", "-o", "json")
	require.Equal(t, 5, r.code, r.stderr)

	r = term.run("cluster", "-o", "wide")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "2026a 79957fa62d10")
	lines = strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Equal(t, "0 held a 3 in 2.0 s in 30 s 0 ms 0 ms", spaced(lines[len(lines)-2]))

	r = term.run("cluster", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	var doc struct{ Partitions []struct{ State string } }
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc))
	require.Equal(t, "free", doc.Partitions[1].State)

	r = term.run("cluster", "confirm-clock")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "it is 2026-11-21T04:00:00Z")
}
