package webui

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// gzipped packs text as the build step does.
func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const indexBody = "<!doctype html><title>Carillon</title>"

func builtDist(t *testing.T) fstest.MapFS {
	t.Helper()
	return fstest.MapFS{
		".keep":                   {Data: []byte("kept")},
		"index.html.gz":           {Data: gzipped(t, indexBody)},
		"index.html.br":           {Data: []byte("brotli-index")},
		"assets/app-1a2b.js.gz":   {Data: gzipped(t, "run()")},
		"assets/app-1a2b.js.br":   {Data: []byte("brotli-app")},
		"assets/logo-9f.woff2":    {Data: []byte("font")},
		"boot.js.br":              {Data: []byte("brotli-boot")},
		"boot.js.gz":              {Data: gzipped(t, "boot()")},
		"assets/only-br-77.js.br": {Data: []byte("brotli-only")},
	}
}

func request(h http.Handler, method, target string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for key, value := range header {
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerServes(t *testing.T) {
	h := newHandler(builtDist(t), "")
	tests := []struct {
		name, method, path, accept   string
		status                       int
		encoding, cache, ctype, body string
	}{
		{name: "index prefers brotli", path: "/", accept: "gzip, deflate, br, zstd", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/html", body: "brotli-index"},
		{name: "deep link of two levels is the index", path: "/jobs/42", accept: "br", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/html", body: "brotli-index"},
		{name: "deep link with a query is the index", path: "/runs?state=failed", accept: "br", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/html", body: "brotli-index"},
		{name: "brotli refused by weight", path: "/", accept: "br;q=0, gzip", status: 200, encoding: "gzip", cache: cacheRevalidate, ctype: "text/html"},
		{name: "star accepts all", path: "/", accept: "*", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/html", body: "brotli-index"},
		{name: "no compression is unpacked", path: "/", status: 200, cache: cacheRevalidate, ctype: "text/html", body: indexBody},
		{name: "hashed asset is immutable", path: "/assets/app-1a2b.js", accept: "br", status: 200, encoding: "br", cache: cacheForever, ctype: "text/javascript", body: "brotli-app"},
		{name: "asset that is not text", path: "/assets/logo-9f.woff2", accept: "br, gzip", status: 200, cache: cacheForever, ctype: "font/woff2", body: "font"},
		{name: "file beside the index is revalidated", path: "/boot.js", accept: "br", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/javascript", body: "brotli-boot"},
		{name: "missing asset", path: "/assets/app-old.js", accept: "br", status: 404, cache: "no-store", ctype: "text/plain"},
		{name: "missing file beside the index", path: "/robots.txt", status: 404, cache: "no-store", ctype: "text/plain"},
		{name: "unknown api path is never a page", path: "/api/v1/nothing", status: 404, cache: "no-store", ctype: "text/plain"},
		{name: "hidden file is not served", path: "/.keep", status: 404, cache: "no-store", ctype: "text/plain"},
		{name: "dot segments stay inside", path: "/assets/../../etc/passwd", accept: "br", status: 200, encoding: "br", cache: cacheRevalidate, ctype: "text/html", body: "brotli-index"},
		{name: "brotli only and not accepted", path: "/assets/only-br-77.js", accept: "gzip", status: 406, ctype: "text/plain"},
		{name: "writing method", method: http.MethodPost, path: "/", status: 405, ctype: "text/plain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			method := tt.method
			if method == "" {
				method = http.MethodGet
			}
			w := request(h, method, tt.path, map[string]string{"Accept-Encoding": tt.accept})
			if w.Code != tt.status {
				t.Fatalf("status %d, want %d", w.Code, tt.status)
			}
			if got := w.Header().Get("Content-Encoding"); got != tt.encoding {
				t.Errorf("encoding %q, want %q", got, tt.encoding)
			}
			if got := w.Header().Get("Cache-Control"); tt.cache != "" && got != tt.cache {
				t.Errorf("cache %q, want %q", got, tt.cache)
			}
			if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, tt.ctype) {
				t.Errorf("content type %q, want %q", got, tt.ctype)
			}
			if tt.body != "" && w.Body.String() != tt.body {
				t.Errorf("body %q, want %q", w.Body.String(), tt.body)
			}
		})
	}
}

func TestHandlerSetsSecurityHeadersAlways(t *testing.T) {
	h := newHandler(builtDist(t), "")
	for _, path := range []string{"/", "/assets/app-1a2b.js", "/assets/none.js", "/jobs"} {
		w := request(h, http.MethodGet, path, nil)
		csp := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"script-src 'self';", "style-src 'self' 'unsafe-inline'", "frame-ancestors 'none'", "object-src 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: nosniff %q", path, got)
		}
		if w.Header().Get("Referrer-Policy") == "" {
			t.Errorf("%s: no referrer policy", path)
		}
	}
}

func TestHandlerRevalidates(t *testing.T) {
	h := newHandler(builtDist(t), "")
	first := request(h, http.MethodGet, "/", map[string]string{"Accept-Encoding": "br"})
	etag := first.Header().Get("ETag")
	if etag == "" {
		t.Fatal("no ETag")
	}
	again := request(h, http.MethodGet, "/", map[string]string{"Accept-Encoding": "gzip", "If-None-Match": etag})
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("status %d with %d bytes, want 304 and none", again.Code, again.Body.Len())
	}
	changed := request(h, http.MethodGet, "/", map[string]string{"If-None-Match": `W/"other"`})
	if changed.Code != http.StatusOK {
		t.Errorf("status %d for another tag, want 200", changed.Code)
	}
}

func TestHandlerHeadHasNoBody(t *testing.T) {
	h := newHandler(builtDist(t), "")
	for _, accept := range []string{"br", ""} {
		w := request(h, http.MethodHead, "/", map[string]string{"Accept-Encoding": accept})
		if w.Code != http.StatusOK || w.Body.Len() != 0 {
			t.Errorf("accept %q: status %d, %d bytes", accept, w.Code, w.Body.Len())
		}
	}
}

func TestHandlerWithoutBuildTellsHow(t *testing.T) {
	h := newHandler(fstest.MapFS{".keep": {Data: []byte("kept")}}, "")
	for _, path := range []string{"/", "/jobs/7"} {
		w := request(h, http.MethodGet, path, map[string]string{"Accept-Encoding": "br"})
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "make ui") {
			t.Errorf("%s: status %d, body %q", path, w.Code, w.Body.String())
		}
	}
}

// TestEmbeddedPagesAnswer holds for a checkout with and without a build: the
// real server over the real socket always has a page for a person.
func TestEmbeddedPagesAnswer(t *testing.T) {
	srv := httptest.NewServer(Handler(""))
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "make ui"
	if built() {
		want = `id="root"`
	}
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
		t.Errorf("status %d, body %.200q, want %q in it", res.StatusCode, body, want)
	}
}

// built tells whether this binary carries built pages.
func built() bool {
	for _, name := range []string{"dist/index.html", "dist/index.html.gz"} {
		if _, err := fs.Stat(embedded, name); err == nil {
			return true
		}
	}
	return false
}

// TestHandlerAtAPath reads the index, packed and plain. It names the path in place of the
// root. Requests for its files come without the path.
func TestHandlerAtAPath(t *testing.T) {
	dist := builtDist(t)
	dist["index.html.gz"].Data = gzipped(t, `<html data-base="/"><script src="/boot.js"></script><script src="/assets/app-1a2b.js"></script>a/b`)
	want := `<html data-base="/ops/carillon/"><script src="/ops/carillon/boot.js"></script><script src="/ops/carillon/assets/app-1a2b.js"></script>a/b`
	h := newHandler(dist, "/ops/carillon")
	for _, path := range []string{"/", "/jobs/42", "/index.html"} {
		w := request(h, http.MethodGet, path, nil)
		if w.Body.String() != want {
			t.Errorf("%s: %s", path, w.Body)
		}
		// Brotli of the build would still name the root.
		packed := request(h, http.MethodGet, path, map[string]string{"Accept-Encoding": "br, gzip"})
		unpacked, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if text, err := io.ReadAll(unpacked); err != nil || string(text) != want {
			t.Errorf("%s packed: %s, %v", path, text, err)
		}
	}
	if w := request(h, http.MethodGet, "/assets/app-1a2b.js", map[string]string{"Accept-Encoding": "br"}); w.Body.String() != "brotli-app" {
		t.Errorf("asset: %s", w.Body)
	}
	root := request(newHandler(dist, ""), http.MethodGet, "/", nil).Header().Get("ETag")
	if tag := request(h, http.MethodGet, "/", nil).Header().Get("ETag"); tag == "" || tag == root {
		t.Errorf("tag %q at the path, %q at the root", tag, root)
	}
}

// TestTheIndexOfThisBuildFollowsThePath finds no address at the root in the built index.
func TestTheIndexOfThisBuildFollowsThePath(t *testing.T) {
	w := request(Handler("/ops/carillon"), http.MethodGet, "/jobs", nil)
	if !built() { // the page in its place leads nowhere
		if !strings.Contains(w.Body.String(), "make ui") || strings.Contains(w.Body.String(), `="/`) {
			t.Errorf("the page of a build without pages: %.200q", w.Body)
		}
		return
	}
	addresses := regexp.MustCompile(`(?:src|href|data-base)=['"]?([^'" >]+)`).FindAllStringSubmatch(w.Body.String(), -1)
	if len(addresses) < 4 {
		t.Fatalf("%d addresses in %s", len(addresses), w.Body)
	}
	for _, a := range addresses {
		if !strings.HasPrefix(a[1], "/ops/carillon/") {
			t.Errorf("the address %s is not below the path", a[1])
		}
	}
}
