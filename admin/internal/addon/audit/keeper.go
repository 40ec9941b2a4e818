package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

const (
	// chainEvery bounds how long an entry can be changed without a trace.
	chainEvery = 2 * time.Second
	// tellEvery is how often new heads are logged.
	tellEvery = time.Minute
	// deleteEvery is how often old entries are deleted.
	deleteEvery = 10 * time.Minute
	// headsFile is the file of the data directory with the heads.
	headsFile = "audit-heads.json"
)

// keeperOptions are what a keeper needs. All of it is needed.
type keeperOptions struct {
	Table   Table
	DataDir string
	Kept    time.Duration
	Leads   func() bool
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// keeper chains entries on the node that leads, and keeps the heads outside of the database.
type keeper struct {
	keeperOptions // fixed after construction
	chained       prometheus.Gauge
	back, forged  prometheus.Counter

	// owned by the goroutine of Run
	heads  map[domain.TenantID]Head // of the file; nil: not read since this node leads
	untold map[domain.TenantID]bool // heads that were not logged
	broken bool
	told   time.Time
	swept  time.Time
}

func newKeeper(o keeperOptions) *keeper {
	k := &keeper{
		keeperOptions: o, untold: map[domain.TenantID]bool{},
		chained: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "carillon_audit_chained", Help: "Audit entries that were ever chained, as the node that chains knows them. The number never falls unless the log was put back or cut.",
		}),
		back: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "carillon_audit_rollbacks_total", Help: "Chains of audit entries that were found to end before the head that this node has kept.",
		}),
		forged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "carillon_audit_forged_total", Help: "Audit entries that were found to be forged: no node has written them.",
		}),
	}
	o.Metrics.MustRegister(k.chained, k.back, k.forged)
	return k
}

// Run works until ctx ends.
func (k *keeper) Run(ctx context.Context) {
	tick := time.NewTicker(chainEvery)
	defer tick.Stop()
	for {
		if k.Leads() {
			k.tell(ctx, k.round(ctx, time.Now()))
		} else {
			k.heads = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell logs an error when it comes, and its end.
func (k *keeper) tell(ctx context.Context, err error) {
	if ctx.Err() != nil || (err != nil) == k.broken {
		return
	}
	if k.broken = err != nil; k.broken {
		k.Logger.Error("audit log not chained", "err", err)
	} else {
		k.Logger.Info("audit log chained again")
	}
}

func (k *keeper) round(ctx context.Context, now time.Time) error {
	if k.heads == nil {
		if err := k.load(ctx); err != nil {
			return err
		}
	}
	heads, err := k.Table.Chain(ctx)
	if saveErr := k.keep(heads); saveErr != nil {
		err = errors.Join(err, saveErr)
	}
	if now.Sub(k.told) >= tellEvery {
		k.told = now
		for tenant := range k.untold {
			h := k.heads[tenant]
			k.Logger.Info("audit log head", "tenant_id", tenant, "seq", h.Seq, "id", h.ID, "hash", h.Hash)
		}
		clear(k.untold)
	}
	if now.Sub(k.swept) >= deleteEvery {
		k.swept = now
		err = errors.Join(err, k.deleteOld(ctx, now))
	}
	return err
}

func (k *keeper) path() string { return filepath.Join(k.DataDir, headsFile) }

// load reads the file and compares it with the database.
func (k *keeper) load(ctx context.Context) error {
	stored, err := k.Table.Heads(ctx)
	if err != nil {
		return err
	}
	kept := map[domain.TenantID]Head{}
	raw, err := os.ReadFile(k.path())
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read heads of the audit log: %w", err)
	}
	k.heads = map[domain.TenantID]Head{}
	back := false
	for tenant, was := range kept {
		back = k.compare(tenant, was, stored[tenant]) || back
	}
	if back { // it is the evidence
		if err := os.Rename(k.path(), fmt.Sprintf("%s.%d", k.path(), time.Now().Unix())); err != nil {
			return fmt.Errorf("keep heads of the audit log: %w", err)
		}
	}
	return k.keep(stored)
}

// compare reports whether a chain is behind the head that was kept.
func (k *keeper) compare(tenant domain.TenantID, was, is Head) (back bool) {
	if is.Seq > was.Seq || is == was {
		return false
	}
	k.back.Inc()
	k.Logger.Error("the audit log was put back or cut: run carillon audit verify with the kept head", "tenant_id", tenant,
		"kept_seq", was.Seq, "kept_hash", was.Hash, "seq", is.Seq, "hash", is.Hash, "file", k.path())
	return true
}

// keep writes new heads to the file.
func (k *keeper) keep(heads map[domain.TenantID]Head) error {
	if len(heads) == 0 {
		return nil
	}
	next := maps.Clone(k.heads)
	for tenant, h := range heads {
		if was, known := next[tenant]; known && was != h && h.Seq <= was.Seq {
			k.heads = nil // load compares, and keeps the evidence
			return nil
		}
		next[tenant] = h
	}
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := secret.WriteFile(k.path(), append(raw, '\n'), true); err != nil {
		return fmt.Errorf("write heads of the audit log: %w", err)
	}
	for tenant := range heads {
		k.untold[tenant] = true
	}
	total := int64(0)
	for _, h := range next {
		total += h.Seq
	}
	k.chained.Set(float64(total))
	k.heads = next
	return nil
}

// deleteOld deletes entries that are older than the retention.
func (k *keeper) deleteOld(ctx context.Context, now time.Time) error {
	var errs []error
	for tenant := range k.heads {
		for ctx.Err() == nil {
			n, err := k.Table.DeleteBefore(ctx, tenant, now.Add(-k.Kept))
			errs = append(errs, err)
			if err != nil || n < deleteOnce {
				break
			}
		}
	}
	return errors.Join(errs...)
}
