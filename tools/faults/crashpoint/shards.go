package crashpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// partsOf lists the parts of a run.
func (s *stage) partsOf(ctx context.Context, id string) ([]run, error) {
	list, err := ask(ctx, s, "parts of run "+id, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.RunParts], error) {
		return api.ListRunParts(ctx, id, apiclient.ListRunPartsParams{})
	})
	return runsIn(list, err)
}

// shards is how many shards a fire of these cells has.
const shards = 3

// spreadJob makes the cell's job.
func (p *play) spreadJob(ctx context.Context) error {
	return p.newJob(ctx, func(j *apiclient.JobWrite) {
		j.Sharding, j.Blocking = &apiclient.Sharding{Mode: "fixed", Shards: shards}, "serial"
	})
}

// playSpread: the node dies while it cuts a run into shards.
func playSpread(ctx context.Context, p *play) error {
	if err := p.spreadJob(ctx); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	r, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	return p.shardsEnd(ctx, id, func(_ run, start time.Time) { p.delayed(r.FireAt, start) })
}

// playLastShard: the node dies when the results come that end the run.
func playLastShard(ctx context.Context, p *play) error {
	if err := p.spreadJob(ctx); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 1500})
	if err != nil {
		return err
	}
	if _, err := p.reaches(ctx, id, "running"); err != nil {
		return err
	}
	parts, err := p.partsOf(ctx, id)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := p.started(ctx, part.ID, 1); err != nil {
			return err
		}
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	var last time.Time
	err = p.shardsEnd(ctx, id, func(part run, _ time.Time) {
		if end, err := p.endOf(part.ID); err == nil && end.After(last) {
			last = end
		}
	})
	if err != nil {
		return err
	}
	r, err := p.find(ctx, id)
	p.delayed(last, r.FinishedAt)
	return err
}

// shardsEnd waits for the end of a run: each of its shards was started once.
func (p *play) shardsEnd(ctx context.Context, id string, each func(part run, start time.Time)) error {
	r, err := p.reaches(ctx, id, "succeeded", "failed", "timed_out", "cancelled", "missed", "discarded", "excluded")
	if err != nil {
		p.cell.Missed++
		return err
	}
	parts, err := p.partsOf(ctx, id)
	if err != nil {
		return err
	}
	if r.State != "succeeded" || len(parts) != shards {
		return fmt.Errorf("the run is %s with %d shards, want %d: %s", r.State, len(parts), shards, r.Message)
	}
	for _, part := range parts {
		if _, err := p.ends(ctx, part.ID, done); err != nil {
			return fmt.Errorf("shard %s: %w", part.ID, err)
		}
		start, err := p.started(ctx, part.ID, 1)
		if err != nil {
			return err
		}
		each(part, start)
	}
	return nil
}
