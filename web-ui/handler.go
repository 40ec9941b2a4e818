package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

const (
	indexName = "index.html"
	// assetDir holds files whose name contains the hash of their content.
	assetDir = "assets/"

	cacheForever    = "public, max-age=31536000, immutable"
	cacheRevalidate = "no-cache"

	// contentSecurityPolicy is strict for scripts. Styles need 'unsafe-inline':
	// the component library inserts style elements, and by nonce alone the
	// table page still reported one violation.
	contentSecurityPolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// file is one page or asset in every form it is held in; a nil form is absent.
type file struct {
	plain, gz, br []byte
	contentType   string
	cacheControl  string
	// etag is over the content, the same for all encodings, hence weak.
	etag string
}

// handler serves a fixed set of files; all fields are fixed after construction.
type handler struct {
	files map[string]*file
	index *file
}

// newHandler reads every file of dist into memory once (for an embed.FS these
// are already there). A dist without index.html gets the built-in page. The path is
// written into the index.
func newHandler(dist fs.FS, path string) http.Handler {
	h := &handler{files: make(map[string]*file)}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		content, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		h.add(name, content)
		return nil
	})
	if err != nil {
		panic("webui: read dist: " + err.Error())
	}
	if h.index = h.files[indexName]; h.index == nil {
		h.add(indexName, []byte(notBuiltPage))
		h.index = h.files[indexName]
	}
	if path != "" {
		h.index = h.index.below(path)
		h.files[indexName] = h.index
	}
	return h
}

// below returns the index of a server at a path. The index names the root only in
// attributes. These are data-base, which the pages read, and the addresses of the first
// scripts and styles. All other files name each other relative to themselves.
func (f *file) below(path string) *file {
	plain := f.plain
	if plain == nil {
		unpacked, err := gzip.NewReader(bytes.NewReader(f.gz))
		if err == nil {
			plain, err = io.ReadAll(unpacked)
		}
		if err != nil {
			panic("webui: unpack the index: " + err.Error())
		}
	}
	plain = bytes.ReplaceAll(plain, []byte(`="/`), []byte(`="`+path+`/`))
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one of gzip's
	_, _ = w.Write(plain)                                      // a buffer refuses nothing
	_ = w.Close()
	return &file{plain: plain, gz: packed.Bytes(), contentType: f.contentType, cacheControl: f.cacheControl, etag: etagOf(plain)}
}

// add files one form of a file under the name that the browser asks for.
func (h *handler) add(name string, content []byte) {
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".br")
	f := h.files[base]
	if f == nil {
		f = &file{contentType: contentTypeOf(base), cacheControl: cacheRevalidate}
		if strings.HasPrefix(base, assetDir) {
			f.cacheControl = cacheForever
		}
		h.files[base] = f
	}
	switch path.Ext(name) {
	case ".br":
		f.br = content
	case ".gz":
		f.gz = content
	default:
		f.plain = content
	}
	if f.etag == "" {
		f.etag = etagOf(content)
	}
}

func etagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// ServeHTTP answers GET and HEAD. A path of a file is that file; a path which
// looks like a file but is none is 404, so that a page of an older build asks
// for a reload instead of running HTML as a script; every other path is a deep
// link into the application and gets index.html.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	f := h.files[name]
	if f == nil {
		if strings.HasPrefix(name, assetDir) || strings.HasPrefix(name, "api/") || path.Ext(name) != "" {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		f = h.index
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", f.cacheControl)
	header.Set("ETag", f.etag)
	header.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	accepted := parseAcceptEncoding(r.Header.Get("Accept-Encoding"))
	switch {
	case f.br != nil && accepted("br"):
		header.Set("Content-Encoding", "br")
		writeBody(w, r, f.br)
	case f.gz != nil && accepted("gzip"):
		header.Set("Content-Encoding", "gzip")
		writeBody(w, r, f.gz)
	case f.plain != nil:
		writeBody(w, r, f.plain)
	default:
		f.serveUnpacked(w, r)
	}
}

// serveUnpacked is for clients without compression, such as plain curl. Only
// .gz is unpacked: the standard library has no brotli.
func (f *file) serveUnpacked(w http.ResponseWriter, r *http.Request) {
	unpacked, err := gzip.NewReader(bytes.NewReader(f.gz))
	if err != nil {
		http.Error(w, "this file is held compressed only; send Accept-Encoding: br, gzip", http.StatusNotAcceptable)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	// The header is out by the first byte, so an error has no other way to
	// show than a short body; it can come from the client's end only.
	_, _ = io.Copy(w, unpacked)
}

func writeBody(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	// The client went away: nobody is left to tell.
	_, _ = w.Write(body)
}

func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// parseAcceptEncoding returns whether a coding is accepted (RFC 9110, 12.5.3):
// listed with a weight above zero, or covered by "*".
func parseAcceptEncoding(value string) func(coding string) bool {
	weights := make(map[string]float64)
	for part := range strings.SplitSeq(value, ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		weight := 1.0
		if q, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q="); found {
			parsed, err := strconv.ParseFloat(q, 64)
			if err != nil {
				continue
			}
			weight = parsed
		}
		weights[strings.ToLower(strings.TrimSpace(coding))] = weight
	}
	return func(coding string) bool {
		if weight, listed := weights[coding]; listed {
			return weight > 0
		}
		return weights["*"] > 0
	}
}

// contentTypeOf does not ask the system's table for the types that matter:
// a wrong one there (.js as text/plain) plus nosniff would break every page.
func contentTypeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	default:
		if byExt := mime.TypeByExtension(ext); byExt != "" {
			return byExt
		}
		return "application/octet-stream"
	}
}

// notBuiltPage needs no script and no style of its own build.
const notBuiltPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carillon: pages not built</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:12vh auto;padding:0 1rem}pre{background:#eef0f3;padding:.8rem;border-radius:6px}</style>
</head>
<body>
<h1>The web pages are not in this build</h1>
<p>The server runs, and its API under <code>/api/v1</code> and the <code>carillon</code> command work.
The pages are built with Node 20 or newer, then embedded by the Go build:</p>
<pre>make ui
go build ./cmd/carillon</pre>
<p lang="zh">服务已在运行，接口与命令行可用；网页需先用 Node 20 或更新版本构建，再重新编译：<code>make ui</code>。</p>
</body>
</html>
`
