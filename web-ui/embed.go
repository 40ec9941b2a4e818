// Package webui answers one question: which pages does the browser get?
//
// The pages are built by Vite into dist/ ("make ui") and embedded, compressed
// ahead of time as .br and .gz, so that a server is one file and sends ready
// bytes. Without a build the package still compiles (dist/.keep is committed)
// and shows a plain page which tells how to build it: `go build` and `go test`
// need no Node.
//
// It speaks plain net/http and knows nothing of the API; whoever mounts it
// gives it every path that is not the API's.
package webui

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:dist
var embedded embed.FS

// Handler serves the embedded pages of a server that is at a path of its host, such as
// /carillon. An empty path is the root. Requests come without the path. It is safe for
// concurrent use and holds no resources that need closing.
func Handler(path string) http.Handler {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		// The embed directive above guarantees the folder.
		panic("webui: " + err.Error())
	}
	return newHandler(dist, path)
}
