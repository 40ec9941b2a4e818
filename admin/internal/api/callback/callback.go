// Package callback answers: what may follow a run of a job, and does it work?
package callback

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Callback is what follows a run of a job. In JSON, a handler of the job's own executor is a
// text, and no callback is an empty text. Others are a CallbackTarget.
type Callback struct{ CallbackTarget }

// CallbackTarget is a handler of an executor, an address, or a connection.
type CallbackTarget struct {
	Handler    string                 `json:"handler,omitempty" maxLength:"128" doc:"Handler that gets the end of the run; needs no url and no connection"`
	Executor   *ExecutorChoice        `json:"executor,omitempty" doc:"The executor of the handler; default: the job's own"`
	URL        string                 `json:"url,omitempty" maxLength:"2048" doc:"Address that the end of the run is posted to, by the admin nodes and as the tenant's policy allows; templates such as {{input.runId}} from the path on"`
	Timeout    string                 `json:"timeout,omitempty" maxLength:"32" doc:"Of one call to the address; default 30s, or what the policy allows"`
	Headers    map[string]string      `json:"headers,omitempty" maxProperties:"32" doc:"Headers of the call. They stand in the run's input, where readers see them"`
	Connection *ConnectionChoice      `json:"connection,omitempty" doc:"Connection that the end of the run is published by"`
	Target     *builtin.MessageTarget `json:"target,omitempty" doc:"Where the message belongs; each broker has fields of its own"`
}

// ConnectionChoice names a connection by id or by name.
type ConnectionChoice struct {
	ID   string `json:"id,omitempty" doc:"Either this"`
	Name string `json:"name,omitempty" doc:"Or this; ignored beside an id"`
}

// ExecutorChoice names an executor by id or by name.
type ExecutorChoice struct {
	ID   string `json:"id,omitempty" doc:"Either this"`
	Name string `json:"name,omitempty" doc:"Or this; ignored beside an id"`
}

// Schema implements huma.SchemaProvider.
func (Callback) Schema(r huma.Registry) *huma.Schema {
	const name = "Callback"
	if r.Map()[name] == nil {
		longest := domain.MaxNameLength
		r.Map()[name] = &huma.Schema{
			Description: "A text is a handler of the job's own executor; an empty one is no callback",
			OneOf:       []*huma.Schema{{Type: huma.TypeString, MaxLength: &longest}, r.Schema(reflect.TypeFor[CallbackTarget](), true, "")},
		}
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// MarshalJSON implements json.Marshaler.
func (c Callback) MarshalJSON() ([]byte, error) {
	if c.Executor == nil && c.URL == "" && c.Connection == nil {
		return json.Marshal(c.Handler)
	}
	return json.Marshal(c.CallbackTarget)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Callback) UnmarshalJSON(raw []byte) error {
	*c = Callback{}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'"'}) {
		return json.Unmarshal(raw, &c.Handler)
	}
	return json.Unmarshal(raw, &c.CallbackTarget)
}

// Of shows a callback. Names of executors and connections are left to Naming.
func Of(f domain.FollowUp) (out Callback) {
	switch {
	case f.Executor == 0:
		out.Handler = f.Handler
	case f.Request == "":
		out.Handler, out.Executor = f.Handler, &ExecutorChoice{ID: f.Executor.String()}
	case f.Connection != 0:
		to := builtin.ReadMessageRequest(f.Request)
		out.Connection, out.Target = &ConnectionChoice{ID: domain.JobID(f.Connection).String()}, &to
	default:
		out.URL, out.Timeout, out.Headers = builtin.ReadCallRequest(f.Request)
	}
	return out
}

// brief is the target of a callback. Of an address it is the host, because the rest may hold a
// secret.
func (t *CallbackTarget) brief() string {
	switch {
	case t.URL != "":
		u, err := url.Parse(t.URL)
		if err != nil {
			return ""
		}
		return u.Host
	case t.Connection != nil:
		return cmp.Or(t.Connection.Name, t.Connection.ID)
	}
	return t.Handler
}

// DropIDs leaves the names alone, as documents have them.
func (t *CallbackTarget) DropIDs() {
	if t.Executor != nil && t.Executor.Name != "" {
		t.Executor.ID = ""
	}
	if t.Connection != nil && t.Connection.Name != "" {
		t.Connection.ID = ""
	}
}

// Naming finds the names of what callbacks need.
type Naming struct {
	Executors store.Executors
	Handlers  nodehandler.List
}

// Fill writes the names into callbacks. One whose executor or connection is gone keeps the id.
func (n Naming) Fill(ctx context.Context, tenant domain.TenantID, callbacks ...*Callback) error {
	executors, connections := map[string][]*ExecutorChoice{}, map[int64][]*ConnectionChoice{}
	for _, c := range callbacks {
		if c.Executor != nil {
			executors[c.Executor.ID] = append(executors[c.Executor.ID], c.Executor)
		}
		if c.Connection != nil {
			id, err := domain.ParseID[domain.JobID](c.Connection.ID)
			if err != nil {
				return err
			}
			connections[int64(id)] = append(connections[int64(id)], c.Connection)
		}
	}
	for id, uses := range executors {
		e, err := web.ByID(ctx, tenant, id, n.Executors.FindExecutor)
		if err != nil && !domain.Is(err, domain.CodeNotFound) {
			return err
		}
		for _, use := range uses {
			use.Name = e.Name
		}
	}
	names, err := n.connectionNames(ctx, tenant, connections)
	for id, uses := range connections {
		for _, use := range uses {
			use.Name = names[id]
		}
	}
	return err
}

func (n Naming) connectionNames(ctx context.Context, tenant domain.TenantID, wanted map[int64][]*ConnectionChoice) (map[int64]string, error) {
	sender, is := n.Handlers.Sender()
	if !is || len(wanted) == 0 {
		return nil, nil
	}
	ids := make([]int64, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return sender.Connections.Names(ctx, tenant, ids)
}
