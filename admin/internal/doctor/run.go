package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// Limit bounds a whole examination.
	Limit = 5 * time.Second
	// CheckLimit bounds one check, from the end of those that it needs.
	CheckLimit = 2 * time.Second
	// margin is what is left of Limit for the report itself.
	margin = 200 * time.Millisecond
)

// Check is one question.
type Check struct {
	ID string
	// Needs are ids of checks before this one that must not have failed or been skipped.
	Needs []string
	// Look answers. It should end with ctx; if it does not, nobody waits for it.
	Look func(ctx context.Context) []Result
}

// running is a check under way.
type running struct {
	done    chan struct{} // closed when results are there
	results []Result      // fixed once done is closed
}

// usable reports whether a check that needs this one can work.
func (r *running) usable() bool {
	return !slices.ContainsFunc(r.results, func(one Result) bool { return one.Status == Failed || one.Status == Skipped })
}

// Run makes all checks at once.
func Run(ctx context.Context, checks []Check) *Report {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Limit-margin)
	defer cancel()
	all := map[string]*running{}
	order := make([]*running, len(checks))
	for i, c := range checks {
		r := &running{done: make(chan struct{})}
		needs := make([]*running, len(c.Needs))
		for j, id := range c.Needs {
			if needs[j] = all[id]; needs[j] == nil {
				panic("doctor: check " + c.ID + " needs " + id + ", which is not before it")
			}
		}
		all[c.ID], order[i] = r, r
		go func() { // ends with ctx
			defer close(r.done)
			r.results = named(c.ID, c.after(ctx, needs))
		}()
	}
	report := &Report{Counts: map[Status]int{OK: 0, Warning: 0, Failed: 0, Skipped: 0}}
	for _, r := range order {
		<-r.done
		report.Results = append(report.Results, r.results...)
		for _, one := range r.results {
			report.Counts[one.Status]++
		}
	}
	report.Duration = time.Since(began)
	report.Millis = report.Duration.Milliseconds()
	return report
}

// after looks once the checks it needs have ended well.
func (c Check) after(ctx context.Context, needs []*running) []Result {
	for i, need := range needs {
		<-need.done
		if !need.usable() {
			return []Result{Skip("it needs %s", c.Needs[i])}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, CheckLimit)
	defer cancel()
	answer := make(chan []Result, 1)
	go func() { answer <- c.guarded(ctx) }()
	select {
	case results := <-answer:
		return results
	case <-ctx.Done():
	}
	select { // it may have ended with ctx, and say more than that
	case results := <-answer:
		return results
	case <-time.After(margin / 2):
		return []Result{Fail("no_answer", "See whether its host, disk or name server answers.", "no answer within %s", CheckLimit)}
	}
}

// guarded turns a panic into a result: the other checks are worth hearing.
func (c Check) guarded(ctx context.Context) (results []Result) {
	defer func() {
		if p := recover(); p != nil {
			results = []Result{Fail("bug", "Report this as a bug of Carillon.", "the check itself failed: %v", p)}
		}
	}()
	if results = c.Look(ctx); len(results) == 0 {
		panic(fmt.Sprintf("check %s found nothing at all", c.ID))
	}
	return results
}

func named(id string, results []Result) []Result {
	for i := range results {
		results[i].Check = id
	}
	return results
}
