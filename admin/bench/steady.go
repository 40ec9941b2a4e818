package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// steadyRate is what a busy installation fires all day.
const steadyRate = 1000

// steady measures lateness and price of a load that is no effort.
func (b *bench) steady(ctx context.Context) error {
	for _, kind := range b.o.Databases {
		r, err := b.steadyOf(ctx, kind, 1, nil)
		if err := b.add(r, err); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) steadyOf(ctx context.Context, kind string, admins int, prepare func(*fleet, *Result) error) (r Result, err error) {
	r = Result{Scenario: "steady", Variant: fmt.Sprintf("%d fires/s", steadyRate), Database: kind, Admins: admins}
	if r.FloorLateness, err = b.steadyFloor(ctx, kind); err != nil {
		return r, err
	}
	f, err := b.startFleet(ctx, kind, admins)
	if err != nil {
		return r, err
	}
	defer func() {
		b.keep = b.keep || err != nil
		err = joinClose(err, f.close)
	}()
	if prepare != nil {
		if err := prepare(f, &r); err != nil {
			return r, err
		}
	}
	l, err := newLoad(ctx, f, handlerOnce, steadyRate)
	if err != nil {
		return r, err
	}
	r.Jobs += len(l.jobs)
	first, err := l.begin(ctx, steadyRate)
	if err != nil {
		return r, err
	}
	from := first.Add(warmUp)
	to := from.Add(b.window(time.Minute))
	if err := pauseUntil(ctx, from); err != nil {
		return r, err
	}
	if r.Processes, err = f.measure(ctx, to, r.profileName()); err != nil {
		return r, err
	}
	if err := l.end(ctx); err != nil {
		return r, err
	}
	seen, err := f.observe(ctx)
	if err != nil {
		return r, err
	}
	r.Window = seconds(to.Sub(from))
	r.Fires, r.Lateness = seen.judge(grid{every: time.Second, from: from, to: to, exact: steadyRate * int(to.Sub(from)/time.Second)})
	perFire(r.Processes, r.Fires.Started)
	if err := r.Fires.broken(); err != nil {
		r.Failed = err.Error()
		b.keep = true
	}
	return r, nil
}

// steadyFloor is how long the statements of an offer and its grant take for
// the few runs that are due within the same milliseconds, one after the other.
func (b *bench) steadyFloor(ctx context.Context, kind string) (*Spread, error) {
	const few = 5
	s := shape{claim: few, offer: few, finish: few, workers: map[string]int{}}
	f, err := b.measureFloor(ctx, floorPlan{kind: kind, handler: handlerOnce, shape: s, lives: 2000})
	if err != nil {
		return nil, err
	}
	var ms []float64
	spent := map[int]time.Duration{} // by offer
	for i, step := range f.steps {
		switch step.stage {
		case stageOffer:
			spent[i] = f.result.busy[i]
		case stageGrant:
			total := f.result.busy[i]
			for _, before := range step.after {
				total += spent[before]
			}
			for range step.lives {
				ms = append(ms, float64(total.Microseconds())/1000)
			}
		}
	}
	return spreadOf(ms), nil
}

// profileName begins the names of a result's profiles.
func (r *Result) profileName() string {
	name := r.Scenario + "-" + r.Variant + "-" + r.Database
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '/' || c == ',' {
			return '_'
		}
		return c
	}, name)
}
