package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// What an executor logs when its journal takes nothing, and when it does again
// (executor-sdk/process.go).
const (
	saysFull = "the journal cannot be written"
	saysRoom = "the journal can be written again"
)

// f31 fills the disk that one of two executors has its journal on, again and
// again, while it runs handlers. It has to say so, start nothing, deliver what
// its handlers return, and take runs again when there is room.
func f31(ctx context.Context, s *stage) error {
	disk, err := s.journalDisk(ctx, 8<<20)
	if err != nil {
		return err
	}
	err = s.open(ctx, fleetPlan{admins: 2, executors: 2, prepare: func(k int, c *lab.Command) {
		if k == 0 {
			disk.prepare(c)
		}
	}})
	if err != nil {
		return err
	}
	if err := s.begin(ctx, mixedJobs(s.rate()/2)); err != nil {
		return err
	}
	refused, err := s.refusals(ctx)
	if err != nil {
		return err
	}
	w := s.executors[0]
	length, pause := pick(s.set, 10*time.Second, 5*time.Second), pick(s.set, 6*time.Second, 3*time.Second)
	for range s.rounds(10, 1) {
		err := s.fault("journal's disk full", w.name, func() error {
			return keepFull(ctx, filepath.Join(disk.seen(w.PID()), "filler"), length)
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
	after, err := s.refusals(ctx)
	if err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	cuts, said := saidFull(w.LogFile)
	return errors.Join(err, said, s.judgeFull(j, w, cuts, after-refused))
}

// judgeFull looks at what the executor started and returned while its journal
// took nothing, by its own words.
func (s *stage) judgeFull(j *judged, w *witnessProcess, cuts []cut, refused float64) error {
	var wrong problems
	if len(cuts) < s.result.Injected {
		wrong.add("full disks of which the executor said nothing", "%d of %d", s.result.Injected-len(cuts), s.result.Injected)
	}
	across, elsewhere := 0, 0
	resumed := make([]float64, len(cuts))
	for _, r := range j.runs {
		if row := j.rows[r.Key]; row.State != "succeeded" {
			wrong.add("lost results", "run %s, whose handler ran on %s, is %s (%s)", r.Key, r.Boot, row.State, row.Reason)
		}
		for i, c := range cuts {
			// A start is written down by the handler itself, a moment after it was decided.
			inside := r.Start > c.from+verify.Span(500*time.Millisecond) && r.Start < c.to
			switch {
			case executorOf(r) != w.name:
				if inside {
					elsewhere++
				}
			case inside:
				wrong.add("starts without a journal", "run %s %d ms after the executor said that it takes none", r.Key, (r.Start-c.from)/1000)
			case r.Start <= c.from && r.End > c.from:
				across++
			case r.Start >= c.to && (resumed[i] == 0 || float64(r.Start-c.to)/1000 < resumed[i]):
				resumed[i] = float64(r.Start-c.to) / 1000
			}
		}
	}
	back := summary(resumed)
	figures := s.result.Figures
	figures["runsAcross"], figures["startsElsewhere"], figures["refusedOffers"], figures["resumedMs"] = across, elsewhere, refused, back
	s.figure("%d offers refused in %d full disks, 0 starts without a journal; %d handlers that were under way returned into a full disk, no result lost; %d runs went to the other executor; lateness %s; taking runs again %.0f ms after there was room for the journal",
		int(refused), len(cuts), across, elsewhere, j.inside, back.Max)
	if across == 0 || elsewhere == 0 || back.Max == 0 {
		wrong.add("kinds of evidence missing", "%d handlers under way, %d runs elsewhere, resumed after %.0f ms", across, elsewhere, back.Max)
	}
	return wrong.err()
}

// refusals counts the offers that executors gave back, on all nodes.
func (s *stage) refusals(ctx context.Context) (n float64, err error) {
	for _, a := range s.fleet.Admins {
		m, err := a.API.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		n += m["carillon_offers_returned_total"]
	}
	return n, nil
}

// saidFull reads from an executor's log when its journal took nothing.
func saidFull(log string) (cuts []cut, err error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		full, room := strings.Contains(lines.Text(), saysFull), strings.Contains(lines.Text(), saysRoom)
		if !full && !room {
			continue
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "time="), " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return nil, fmt.Errorf("the executor's log: %w", err)
		}
		switch {
		case full:
			cuts = append(cuts, cut{from: verify.At(at)})
		case len(cuts) > 0:
			cuts[len(cuts)-1].to = verify.At(at)
		}
	}
	if n := len(cuts); n > 0 && cuts[n-1].to == 0 {
		err = errors.New("the executor did not say that its journal can be written again")
	}
	return cuts, errors.Join(err, lines.Err())
}

// tightDisk is a small file system for one executor.
type tightDisk struct {
	dir     string
	size    int
	private bool // only the executor sees it
}

// journalDisk makes one: mounted for all where we may, else one that the
// executor mounts in a namespace of its own, which needs no privilege.
func (s *stage) journalDisk(ctx context.Context, size int) (*tightDisk, error) {
	dir, err := s.smallDisk(size)
	var cannot *unableError
	if err == nil || !errors.As(err, &cannot) {
		return &tightDisk{dir: dir, size: size}, err
	}
	if out, err := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil {
		return nil, &unableError{fmt.Sprintf("%s, nor by a process for itself: %v %s", cannot.reason, err, out)}
	}
	return &tightDisk{dir: filepath.Join(s.dir, "disk"), size: size, private: true}, nil
}

// prepare puts the executor's journal on the disk.
func (d *tightDisk) prepare(c *lab.Command) {
	c.Args = append(c.Args, "-journal", filepath.Join(d.dir, "journal"))
	if !d.private {
		return
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=%d tmpfs '%s' && exec "$0" "$@"`, d.size, d.dir)
	c.Args = append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script, c.Program}, c.Args...)
	c.Program = "unshare" // it replaces itself: the pid stays
}

// seen is where we find it, given the executor's process.
func (d *tightDisk) seen(pid int) string {
	if !d.private {
		return d.dir
	}
	return filepath.Join(fmt.Sprintf("/proc/%d/root", pid), d.dir)
}

// keepFull leaves no byte for a while, whatever is freed meanwhile.
func keepFull(ctx context.Context, name string, d time.Duration) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); {
		for err == nil {
			_, err = f.Write(block)
		}
		if errors.Is(err, syscall.ENOSPC) {
			err = wait(ctx, 20*time.Millisecond)
		}
	}
	return errors.Join(err, f.Close(), os.Remove(name))
}
