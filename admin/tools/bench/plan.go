package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// part is a piece of a scenario that is measured, and may fail, on its own.
type part struct {
	// result names what is measured; run fills it in.
	result Result
	// usual is about how long it takes on a quiet machine with two cores.
	usual time.Duration
	run   func(context.Context, *Result) error
}

// patience is how many times its usual time a part gets when no budget was set.
const patience = 3

// ErrBudget is why a part that took too long has no figures.
var ErrBudget = errors.New("gave up: its time was used up")

// budgetOf is how long a part may take.
func (b *bench) budgetOf(p part) time.Duration {
	if b.o.Budget > 0 {
		return b.o.Budget
	}
	return max(2*time.Minute, patience*p.usual)
}

// planned is a scenario and its parts.
type planned struct {
	scenario
	parts []part
}

func (p planned) usual() (sum time.Duration) {
	for _, one := range p.parts {
		sum += one.usual
	}
	return sum
}

// plan lays out the parts of the scenarios, and tells how long all will take.
func (b *bench) plan(chosen []scenario) (all []planned) {
	var sum time.Duration
	for _, s := range chosen {
		p := planned{s, s.parts(b)}
		sum += p.usual()
		all = append(all, p)
	}
	for _, p := range all {
		b.o.Say("%-17s about %6s: %s", p.name, p.usual().Round(time.Second), p.says)
	}
	b.o.Say("all of it in about %s on a quiet machine with two cores, until %s", sum.Round(time.Second), time.Now().Add(sum).Format(time.TimeOnly))
	return all
}

// runAll measures part after part. One that fails does not keep the others
// from being measured; the report is saved after each.
func (b *bench) runAll(ctx context.Context, all []planned) error {
	for _, s := range all {
		b.o.Say("%s: %s", s.name, s.says)
		for _, p := range s.parts {
			b.runPart(ctx, p)
			b.report.Took = seconds(time.Since(b.report.StartedAt))
			if err := b.save(); err != nil {
				return fmt.Errorf("save the report: %w", err)
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
			}
		}
	}
	return nil
}

func (b *bench) save() error {
	if b.o.Save == nil {
		return nil
	}
	return b.o.Save(b.report)
}

// runPart measures one part within its budget.
func (b *bench) runPart(ctx context.Context, p part) {
	budget := b.budgetOf(p)
	ctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("%w (%s)", ErrBudget, budget))
	defer cancel()
	began := time.Now()
	r := p.result
	err := p.run(ctx, &r)
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	r.Took = seconds(time.Since(began))
	b.add(r, err)
}

// add keeps a result and tells it at once.
func (b *bench) add(r Result, err error) {
	if err != nil && r.Failed == "" {
		r.Failed = err.Error()
	}
	b.report.Results = append(b.report.Results, r)
	b.o.Say("  %s", r.line())
}
