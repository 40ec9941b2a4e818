package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// sampleEvery is how often memory is looked at; CPU is counted by the kernel.
const sampleEvery = 500 * time.Millisecond

// measure watches the fleet's processes and the machine from now to an instant,
// and takes profiles of that time when they were asked for.
func (f *fleet) measure(ctx context.Context, to time.Time, r *Result) error {
	var profiles sync.WaitGroup
	var failed error
	if len(f.profiles) > 0 {
		profiles.Go(func() { failed = f.takeProfiles(ctx, time.Until(to), r.profileName()) })
	}
	began := time.Now()
	before := make([]lab.Usage, len(f.processes))
	peak := make([]int64, len(f.processes))
	for i, p := range f.processes {
		before[i] = lab.UsageOf(p.pid)
	}
	for now := began; now.Before(to); now = time.Now() {
		for i, p := range f.processes {
			peak[i] = max(peak[i], lab.UsageOf(p.pid).RSS)
		}
		if err := pause(ctx, min(sampleEvery, to.Sub(now))); err != nil {
			return err
		}
	}
	r.Stalls = f.b.stalls.Since(began)
	r.Processes = make([]Process, len(f.processes))
	took := time.Since(began)
	for i, p := range f.processes {
		cpu := lab.UsageOf(p.pid).CPU - before[i].CPU
		r.Processes[i] = Process{Name: p.name, CPU: seconds(cpu), Core: 100 * cpu.Seconds() / took.Seconds(), RSS: peak[i]}
	}
	profiles.Wait()
	if failed != nil {
		return failed
	}
	return f.alive()
}

// perFire shares the CPU out among the runs of the window.
func perFire(list []Process, fires int) {
	for i := range list {
		if fires > 0 {
			list[i].PerFire = float64(list[i].CPU) * 1e6 / float64(fires)
		}
	}
}

// profiled is a process that serves profiles.
type profiled struct{ name, address string }

// takeProfiles writes the CPU, heap and allocation profiles of a window into
// the folder that was named: NAME.PROCESS.cpu and so on, for go tool pprof.
func (f *fleet) takeProfiles(ctx context.Context, window time.Duration, name string) error {
	var all sync.WaitGroup
	errs := make(chan error, 3*len(f.profiles))
	for _, p := range f.profiles {
		all.Go(func() {
			path := filepath.Join(f.b.o.Profiles, name+"."+p.name)
			errs <- fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", p.address, max(1, int(window.Seconds()))), path+".cpu")
			errs <- fetch(ctx, "http://"+p.address+"/debug/pprof/heap", path+".heap")
			errs <- fetch(ctx, "http://"+p.address+"/debug/pprof/allocs", path+".allocs")
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("take profiles: %w", err)
		}
	}
	return nil
}

func fetch(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, res.Body); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
