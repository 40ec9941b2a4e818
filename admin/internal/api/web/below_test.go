package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBelow(t *testing.T) {
	h := Below("/ops/carillon", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path + " " + r.URL.RequestURI()))
	}))
	for _, test := range []struct{ target, seen, location string }{
		{"/ops/carillon/api/v1/jobs?q=%2F", "/api/v1/jobs /api/v1/jobs?q=%2F", ""},
		{"/ops/carillon/", "/ /", ""},
		{"/ops/carillon/api/v1/timers/a%2Fb%20c", "/api/v1/timers/a/b c /api/v1/timers/a%2Fb%20c", ""},
		{"/ops/carillon/ops/carillon/x", "/ops/carillon/x /ops/carillon/x", ""},
		{"/ops/carillon", "", "/ops/carillon/"},
		{"/ops/carillon?next=%2F%2Fevil", "", "/ops/carillon/?next=%2F%2Fevil"},
		// Probes, and a proxy that takes the path away.
		{"/healthz", "/healthz /healthz", ""},
		{"/api/v1/jobs", "/api/v1/jobs /api/v1/jobs", ""},
		// Neighbours.
		{"/ops/carillonx/api/v1/jobs", "/ops/carillonx/api/v1/jobs /ops/carillonx/api/v1/jobs", ""},
		{"/ops", "/ops /ops", ""},
		{"/ops%2Fcarillon/x", "/ops/carillon/x /ops%2Fcarillon/x", ""},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", test.target, nil))
		if test.location != "" {
			require.Equal(t, http.StatusPermanentRedirect, rec.Code, test.target)
			require.Equal(t, test.location, rec.Header().Get("Location"), test.target)
			continue
		}
		require.Equal(t, test.seen, rec.Body.String(), test.target)
	}
}
