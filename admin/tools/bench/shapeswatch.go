package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	watchEvery = time.Second
	// wellAfter is from the end of a disturbance of the database until it counts as well:
	// nodes reconnect, and the metric is above 0 only after five seconds.
	wellAfter = 10 * time.Second
)

// watch samples the nodes' metrics each second. It is safe for concurrent use.
type watch struct {
	mu      sync.Mutex
	nodes   []*lab.Admin // guarded by mu
	samples []sample     // guarded by mu; in the order of time
	sick    []span       // guarded by mu; when the database or all nodes were disturbed
}

// sample is one look at all nodes.
type sample struct {
	at     time.Time
	oldest time.Duration // the highest of all nodes
	free   float64       // slots, of the node with the most; 0 also if no node answered
	ended  float64       // attempts, as all nodes have counted
}

type span struct{ from, to time.Time }

func newWatch(nodes []*lab.Admin) *watch { return &watch{nodes: slices.Clone(nodes)} }

func (w *watch) admins() []*lab.Admin {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// follow names the nodes that are sampled from now on.
func (w *watch) follow(nodes []*lab.Admin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = slices.Clone(nodes)
}

// run samples until ctx ends.
func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(ctx)
		}
	}
}

func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*watchEvery)
	defer cancel()
	nodes, out := w.admins(), sample{at: time.Now()}
	seen := make([]map[string]float64, len(nodes))
	var all sync.WaitGroup
	for i, a := range nodes {
		all.Go(func() { seen[i], _ = a.API.Metrics(ctx) }) // a node that does not answer has no figures
	}
	all.Wait()
	for _, m := range seen {
		out.oldest = max(out.oldest, time.Duration(m["carillon_oldest_startable_run_seconds"]*float64(time.Second)))
		out.ended += m["carillon_attempts_ended_total"]
		out.free = max(out.free, m["carillon_slots"]-m["carillon_slots_used"])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, out)
}

// ended is how many attempts had ended at the last look.
func (w *watch) ended() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.samples) == 0 {
		return 0
	}
	return w.samples[len(w.samples)-1].ended
}

// unwell notes that the database or all nodes are disturbed while do runs.
func (w *watch) unwell(do func() error) error {
	w.mu.Lock()
	i := len(w.sick)
	w.sick = append(w.sick, span{from: time.Now(), to: time.Now().Add(time.Hour)})
	w.mu.Unlock()
	err := do()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sick[i].to = time.Now()
	return err
}

// oldest returns the highest value while the database was well, with its time, and the
// highest one of the rest.
func (w *watch) oldest() (well Seconds, at time.Time, unwell Seconds) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.samples {
		is := slices.ContainsFunc(w.sick, func(x span) bool { return !s.at.Before(x.from) && s.at.Before(x.to.Add(wellAfter)) })
		if is {
			unwell = max(unwell, seconds(s.oldest))
		} else if got := seconds(s.oldest); got > well {
			well, at = got, s.at
		}
	}
	return well, at, unwell
}

// freeThroughout reports whether each sample of a time has free slots.
func (w *watch) freeThroughout(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	order := func(s sample, at time.Time) int { return s.at.Compare(at) }
	i, _ := slices.BinarySearchFunc(w.samples, from, order)
	j, _ := slices.BinarySearchFunc(w.samples, to, order)
	return i < j && !slices.ContainsFunc(w.samples[i:j], func(s sample) bool { return s.free <= 0 })
}
