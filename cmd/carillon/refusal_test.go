package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterRefusals(t *testing.T) {
	server := newFakeServer(t)
	r := keyed(t, server).run("cluster", "refusals")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "7 bad_token shop shop-1 10.0.0.9 no such token")
	require.Contains(t, r.stderr, "3 connections were closed")
}

func (s *fakeServer) refusalRoutes(mux *http.ServeMux) {
	s.route(mux, "GET /cluster/refusals", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"unheard":3,"items":[{"code":"bad_token","executor":"shop","instance":"shop-1","remote":"10.0.0.9","node":"a","message":"no such token","times":7,"firstAt":"2026-11-21T03:00:00.000Z","lastAt":"2026-11-21T04:00:00.000Z"}]}`)
	})
}
