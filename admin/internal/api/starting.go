package api

import (
	"encoding/json"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Starting answers for a node that does not serve yet: it lives, is not ready,
// and says why.
func Starting(reason func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // whoever asked may have left
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p := newProblem(r.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable, "this node starts: "+reason())
		w.Header().Set("Content-Type", p.ContentType(""))
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p)
	})
	return mux
}
