package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Refusals is whom one node turned away.
type Refusals struct {
	BootID  string    `json:"bootId" doc:"Of the node that answers; each knows its own only, since it started"`
	Unheard int64     `json:"unheard" doc:"Connections closed before they said anything, because there were too many"`
	Items   []Refusal `json:"items" doc:"The last one first; no more than 200"`
}

// Refusal is a process that was turned away, as often as for the same reason.
type Refusal struct {
	Code     string `json:"code" doc:"As the process was told: bad_token, token_expired, wrong_executor, certificate_required, bad_certificate, denied, version_unsupported, flapping, limit_reached, not_registered, malformed; or flood"`
	Message  string `json:"message"`
	Remote   string `json:"remote" doc:"Its address; of IPv6 the network of 64 bits"`
	Executor string `json:"executor" doc:"The executor that it said it belongs to"`
	Instance string `json:"instance" doc:"The name that it gave, if any"`
	Times    int    `json:"times"`
	FirstAt  string `json:"firstAt" format:"date-time" doc:"By the node's own clock, as lastAt"`
	LastAt   string `json:"lastAt" format:"date-time"`
}

func (a *API) registerRefusals() {
	register(a, platformAdmin, operation{
		method: http.MethodGet, path: base + "/cluster/refusals", id: "list-refusals", tag: "system",
		summary:     "Which executors this node has turned away, and why",
		description: "What they say of themselves is not proven. Kept in memory.",
	}, func(context.Context, auth.Identity, *struct{}) (*struct{ Body Refusals }, error) {
		list, unheard := a.deps.Refusals()
		out := Refusals{BootID: a.deps.Self, Unheard: unheard, Items: make([]Refusal, 0, len(list))}
		for _, r := range list {
			out.Items = append(out.Items, refusalOf(r))
		}
		return &struct{ Body Refusals }{out}, nil
	})
}

func refusalOf(r domain.Refusal) Refusal {
	return Refusal{
		Code: r.Code, Message: r.Message, Remote: r.Remote, Executor: r.Executor, Instance: r.Instance,
		Times: r.Times, FirstAt: instant(r.FirstAt), LastAt: instant(r.LastAt),
	}
}
