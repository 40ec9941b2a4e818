// Package assistant answers: how does an assistant ask a node over HTTP?
//
// It opens the door /mcp, whose messages are of the Model Context Protocol. The tools are
// those of internal/assistant, which ask the API of this node as their caller
// (docs/adr/0086).
package assistant

import (
	"fmt"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/assistant"
)

// path is the first segment of the door's address, the setting's name, and the way that
// the log names.
const path = "mcp"

// Values of the setting.
const (
	off    = "off"
	reads  = "read"
	writes = "write"
)

const (
	// maxBatch bounds the requests in one message. Clients of the protocol since 2025-06-18
	// send one.
	maxBatch = 16
	// maxValues bounds the members and elements of a message. The protocol's library
	// decodes a message three times, at about 200 bytes a value each.
	maxValues = 10_000
)

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "assistant", Path: path, Check: check, Build: build,
		Settings: []addon.Setting{{
			Name: path, Default: reads,
			Usage: "what assistants may do at /mcp (Model Context Protocol), within their role: off, read, or write, which is run, pause, resume, retry and cancel",
		}},
	}
}

func check(v addon.Values) error {
	switch v.Text(path) {
	case off, reads, writes:
		return nil
	}
	return fmt.Errorf("mcp: %q is none of off, read, write", v.Text(path))
}

func build(n addon.Node) (addon.Parts, error) {
	may := n.Settings.Text(path)
	return addon.Parts{Routes: func(s *web.Server) {
		s.Via(assistant.UserAgent, path)
		if may == off {
			return
		}
		door := assistant.NewHandler(assistant.HandlerOptions{
			API: s, Page: n.BaseURL, Writes: may == writes, Version: n.Version, Logger: n.Logger.With("component", path),
		})
		s.Mount(web.May(domain.PermRead), web.Door{
			Path: "/" + path, Requests: door.Requests, MaxRequests: maxBatch, MaxValues: maxValues,
			Serve: func(w http.ResponseWriter, r *http.Request, id auth.Identity) {
				door.Serve(w, r, id.May(domain.PermOperate))
			},
		})
	}}, nil
}
