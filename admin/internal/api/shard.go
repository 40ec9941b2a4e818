package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Sharding says into how many shards each fire of a job is cut.
type Sharding struct {
	Mode    string `json:"mode" enum:"broadcast,fixed" doc:"broadcast: one shard on each instance that serves the handler when the fire is sent out; fixed: so many shards, on any instance"`
	Shards  int    `json:"shards,omitempty" minimum:"0" maximum:"1000" doc:"fixed: how many"`
	OnGone  string `json:"onGone,omitempty" enum:"miss,move" doc:"broadcast: when a shard's instance goes before it has run there, it is missed (the default), or another instance takes it"`
	Before  string `json:"before,omitempty" maxLength:"128" doc:"Handler that has to succeed before the shards start"`
	After   string `json:"after,omitempty" maxLength:"128" doc:"Handler that runs when all shards have ended; its input is their results"`
	Timeout string `json:"timeout,omitempty" doc:"Of the whole fire; default 0s: none"`
}

func (w *Sharding) read(r *reader) domain.Sharding {
	if w == nil {
		return domain.Sharding{}
	}
	s := domain.Sharding{
		Mode: domain.ShardMode(w.Mode), Shards: w.Shards, OnGone: domain.OnGone(w.OnGone), Before: w.Before, After: w.After,
		Timeout: r.Duration("body.sharding.timeout", w.Timeout, 0),
	}
	if s.Mode == domain.ShardBroadcast && s.OnGone == "" {
		s.OnGone = domain.GoneMiss
	}
	if s.Before != "" {
		s.Before = r.Name("body.sharding.before", s.Before, domain.MaxNameLength)
	}
	if s.After != "" {
		s.After = r.Name("body.sharding.after", s.After, domain.MaxNameLength)
	}
	return s
}

func shardingOf(s domain.Sharding) *Sharding {
	if !s.On() {
		return nil
	}
	out := &Sharding{Mode: string(s.Mode), Shards: s.Shards, OnGone: string(s.OnGone), Before: s.Before, After: s.After}
	if s.Timeout > 0 {
		out.Timeout = domain.DurationText(s.Timeout)
	}
	return out
}

// checkFollowers refuses what would follow runs of the built-in executor: its
// handlers take an input of their own, and not the end of another run.
func checkFollowers(spec *domain.JobSpec) error {
	for _, hook := range [][2]string{
		{"body.sharding.after", spec.Sharding.After}, {"body.onSuccess", spec.OnSuccess.Own()}, {"body.onFailure", spec.OnFailure.Own()},
	} {
		if location, name := hook[0], hook[1]; name != "" {
			return domain.Invalid(location, "handler %q of the executor %s cannot take the end of another run as its input: leave it out here. "+
				"A callback may be a url, a connection, or a handler of another executor", name, domain.BuiltInExecutor)
		}
	}
	return nil
}

// checkHooks looks for the handlers of hooks and callbacks as for the job's own.
func (js *jobs) checkHooks(ctx context.Context, tenant domain.TenantID, executor domain.Executor, spec *domain.JobSpec) error {
	for _, hook := range [][2]string{
		{"body.sharding.before", spec.Sharding.Before}, {"body.sharding.after", spec.Sharding.After},
		{"body.onSuccess", spec.OnSuccess.Own()}, {"body.onFailure", spec.OnFailure.Own()},
	} {
		location, name := hook[0], hook[1]
		if name == "" {
			continue
		}
		_, err := catalogue.Known(ctx, js.store, tenant, executor, name, catalogue.HintSave)
		var known *domain.Error
		if errors.As(err, &known) {
			for i := range known.Fields {
				known.Fields[i].Location = location
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Shard is a slice of a fire.
type Shard struct {
	Index int `json:"index" doc:"From 0"`
	Total int `json:"total" doc:"How many shards the run has"`
}

// familyOf fills in what a run is in its family.
func (r *Run) familyOf(e *domain.Execution) {
	r.ParentID = web.IDOrNull(e.Parent)
	if e.IsPart() {
		r.Part = e.Part.String()
	}
	if e.Part == domain.PartShard {
		r.Shard = &Shard{Index: e.Shard, Total: e.Shards}
	}
	r.BoundTo, r.Stage = web.IDOrNull(e.Bound), e.Stage.String()
	if e.Stage != domain.StageNone {
		r.Shards = e.Shards
	}
}

// RunParts are the shards and hooks of a run.
type RunParts struct {
	Items  []Run          `json:"items" doc:"The shards in order, then the hooks before and after them"`
	More   bool           `json:"more" doc:"There are more than were asked for"`
	Living int            `json:"living" doc:"How many of all parts have not ended"`
	Shards map[string]int `json:"shards" doc:"How many of all shards ended in which state"`
}

type listPartsInput struct {
	ID    string `path:"id" doc:"Id of what the address names, a decimal string"`
	Limit int    `query:"limit" minimum:"1" maximum:"1002" default:"200" doc:"Parts, at most"`
}

func (rs *runs) registerParts(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs/{id}/parts", ID: "list-run-parts", Large: true, Tag: "runs", Summary: "The shards and hooks of a run",
		Description: "Empty for a run without shards.",
	}, rs.listParts)
}

func (rs *runs) listParts(ctx context.Context, id auth.Identity, in *listPartsInput) (*struct{ Body RunParts }, error) {
	eid, err := domain.ParseID[domain.ExecutionID](in.ID)
	if err != nil {
		return nil, err
	}
	views, family, err := rs.store.ListParts(ctx, id.Tenant, eid, in.Limit+1)
	if err != nil {
		return nil, err
	}
	views, more := web.Cut(views, in.Limit)
	out := RunParts{Items: domain.Collect(views, runOf), More: more, Living: family.Living, Shards: map[string]int{}}
	for state, n := range family.Shards {
		out.Shards[state.String()] = n
	}
	return &struct{ Body RunParts }{out}, nil
}

// pickShards lets a new run repeat the shards of an old one that did not succeed,
// or the one shard that old is.
func (rs *runs) pickShards(ctx context.Context, e *domain.Execution, spec *domain.JobSpec, old store.ExecutionView) error {
	switch {
	case !spec.Sharding.On():
		return domain.Errorf(domain.CodeConflict, "the job has no shards any more; run it anew")
	case old.Part == domain.PartBefore || old.Part == domain.PartAfter:
		return domain.Errorf(domain.CodeConflict, "the run is a hook; retry the run that it belongs to")
	case old.Part == domain.PartShard:
		e.Shards, e.Picks = old.Shards, []domain.ShardPick{{Index: old.Shard, Instance: old.Bound}}
		return nil
	}
	views, _, err := rs.store.ListParts(ctx, old.TenantID, old.ID, domain.MaxShards)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.Part == domain.PartShard && v.State != domain.Succeeded {
			e.Shards, e.Picks = v.Shards, append(e.Picks, domain.ShardPick{Index: v.Shard, Instance: v.Bound})
		}
	}
	if len(e.Picks) == 0 {
		return domain.Errorf(domain.CodeConflict, "no shard of the run has failed")
	}
	return nil
}

// versionOf is what the application of the run's instance says of itself; empty if the run has no
// instance, or its row is deleted.
func (rs *runs) versionOf(ctx context.Context, v store.ExecutionView) (string, error) {
	if v.Instance == 0 {
		return "", nil
	}
	i, err := rs.store.FindInstance(ctx, v.TenantID, v.Instance)
	if err != nil && !domain.Is(err, domain.CodeNotFound) {
		return "", err
	}
	return i.AppVersion, nil
}
