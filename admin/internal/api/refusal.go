package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// maxRefusals is more than the nodes keep.
const maxRefusals = 1000

// Refusals is whom the nodes turned away.
type Refusals struct {
	Unheard int       `json:"unheard" doc:"Connections closed before their hello was complete, because there were too many"`
	Items   []Refusal `json:"items" doc:"The last one first; no more than 500 are kept, for 30 days"`
}

// Refusal is a process that was turned away, as often as for the same reason.
type Refusal struct {
	Code     string `json:"code" doc:"As the process was told: bad_token, token_expired, wrong_executor, certificate_required, bad_certificate, denied, version_unsupported, flapping, limit_reached, not_registered, malformed; or flood"`
	Message  string `json:"message" doc:"Of the last time"`
	Remote   string `json:"remote" doc:"Its address; of IPv6 the network of 64 bits; empty: several, counted together because there were too many"`
	Executor string `json:"executor" doc:"The executor that it said it belongs to; empty also for several, when an address uses too many names"`
	Instance string `json:"instance" doc:"The name that it gave, if any"`
	Node     string `json:"node" doc:"The node that turned it away last"`
	Times    int    `json:"times" doc:"How often since it was first seen"`
	FirstAt  string `json:"firstAt" format:"date-time" doc:"By the node's own clock, as lastAt"`
	LastAt   string `json:"lastAt" format:"date-time" doc:"When it was turned away last"`
}

func (a *API) registerRefusals() {
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/cluster/refusals", ID: "list-refusals", Tag: "system",
		Summary: "Which executors the nodes have turned away, and why",
		Description: "What they say of themselves is not proven. Nodes write it down together, every 2 s and a bounded number each time, " +
			"so that strangers are no load for the database: while very many come, some are counted without their names or later.",
	}, func(ctx context.Context, _ auth.Identity, _ *struct{}) (*struct{ Body Refusals }, error) {
		list, err := a.deps.Store.ListRefusals(ctx, maxRefusals)
		if err != nil {
			return nil, err
		}
		out := Refusals{Items: make([]Refusal, 0, len(list))}
		for _, r := range list {
			if r.Code == domain.RefusalUnheard {
				out.Unheard += r.Times
			} else {
				out.Items = append(out.Items, refusalOf(r))
			}
		}
		return &struct{ Body Refusals }{out}, nil
	})
}

func refusalOf(r domain.Refusal) Refusal {
	return Refusal{
		Code: r.Code, Message: r.Message, Remote: r.Remote, Executor: r.Executor, Instance: r.Instance, Node: r.Node,
		Times: r.Times, FirstAt: web.Instant(r.FirstAt), LastAt: web.Instant(r.LastAt),
	}
}
