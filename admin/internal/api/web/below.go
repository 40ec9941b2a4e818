package web

import (
	"net/http"
	"strings"
)

// Below serves a handler at a path of a host, such as /carillon. The handler next sees
// requests without the path. A request without it goes to next as it is. Probes ask so, and so does
// a proxy that takes the path away. The path is empty, or begins with a slash, ends without
// one and has nothing to escape.
func Below(path string, next http.Handler) http.Handler {
	if path == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if escaped == path {
			home := *r.URL
			home.Path, home.RawPath = path+"/", ""
			http.Redirect(w, r, home.RequestURI(), http.StatusPermanentRedirect) //nolint:gosec // it begins with the path that the operator has set
			return
		}
		if !strings.HasPrefix(escaped, path+"/") {
			next.ServeHTTP(w, r)
			return
		}
		inner, address := *r, *r.URL
		address.Path = strings.TrimPrefix(address.Path, path)
		address.RawPath = strings.TrimPrefix(address.RawPath, path)
		inner.URL = &address
		next.ServeHTTP(w, &inner)
	})
}
