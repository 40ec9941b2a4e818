package web

import (
	"encoding/json"
	"maps"
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
		notNow(w, r, "this node starts: "+reason())
	})
	return mux
}

func notNow(w http.ResponseWriter, r *http.Request, detail string) {
	p := NewProblem(r.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable, detail)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever asked may have left
}

// Probes are the paths that are answered as long as the process answers at all.
func Probes() map[string]bool { return maps.Clone(probes) }

// Overloaded answers what is no probe on connections for which there is no room.
func Overloaded(w http.ResponseWriter, r *http.Request) {
	notNow(w, r, "all connections of this node are in use; try again in a moment, or another node")
}
