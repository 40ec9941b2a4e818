package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
)

const (
	// holdLook is how often the node looks whether firing is held.
	holdLook = 250 * time.Millisecond
	// historySave is how often it writes down how far the history reaches: what
	// a restarted node may not notice to be lost.
	historySave = time.Second
	// historyFile in the data directory outlives the process. It names the
	// cluster, so that another database is not taken for an old copy of this one.
	historyFile = "history"
)

// holds tells people and other nodes why firing is held. Owned by one goroutine.
type holds struct {
	clock   scheduler.Hold // what has been told; zero = there is none
	history bool           // it has been told
	logged  bool           // the finding about the history
	epoch   int64          // of the history that the sessions began in
	begun   bool           // epoch is known
	saved   domain.History
	savedAt time.Time
	unsaved bool // it was told that this fails
}

// openHistory compares the database with what an earlier life of this node
// wrote down, before anything is started.
func (a *Admin) openHistory(ctx context.Context, cluster string) error {
	a.historyPath, a.clusterID = filepath.Join(a.config.DataDir, historyFile), cluster
	known, err := knownHistory(a.config.DataDir, cluster)
	if err != nil {
		return fmt.Errorf("read what is known of the database: %w", err)
	}
	if known != (domain.History{}) {
		a.store.RememberHistory(known)
	}
	if _, err := a.store.ReadPartitions(ctx); err != nil {
		return fmt.Errorf("compare the database with what is known of it: %w", err)
	}
	return nil
}

// knownHistory is what a node with this data directory has written down of a
// cluster's database; zero = nothing.
func knownHistory(dataDir, cluster string) (domain.History, error) {
	raw, err := os.ReadFile(filepath.Join(dataDir, historyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return domain.History{}, err
	}
	if of, known, ok := strings.Cut(strings.TrimSpace(string(raw)), " "); ok && of == cluster {
		return domain.ParseHistory(known), nil
	}
	return domain.History{}, nil
}

// watchHolds runs until ctx ends.
func (a *Admin) watchHolds(ctx context.Context) {
	tick := time.NewTicker(holdLook)
	defer tick.Stop()
	var h holds
	for {
		a.lookAtHolds(ctx, &h)
		select {
		case <-ctx.Done():
			h.savedAt = time.Time{}
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodeBeat)
			a.lookAtHolds(last, &h) // what is not told dies with this process
			cancel()
			return
		case <-tick.C:
		}
	}
}

func (a *Admin) lookAtHolds(ctx context.Context, h *holds) {
	ctx, cancel := context.WithTimeout(ctx, nodeBeat)
	defer cancel()
	if hold, held := a.clock.Held(); hold != h.clock { // also when it leapt again
		if err := a.tellClock(ctx, hold, held); err == nil {
			h.clock = hold
		}
	}
	r, held := a.store.RolledBack()
	if held && !h.logged {
		a.metrics.RolledBack()
		a.log.Error("db_rollback: the database has lost what it had committed, and nothing is started until an operator has decided "+
			"(carillon cluster accept-history)", "component", "history", "reason", r.Reason(), "seen", r.Seen.String(), "found", r.Found.String())
	}
	if !held && h.logged {
		a.log.Warn("firing goes on: an operator has accepted the database as it is", "component", "history")
	}
	a.renewSessions(h)
	h.logged = held
	if held && !h.history {
		alert := domain.AlertEvent{Kind: domain.AlertRollback, Detail: r.Reason() + "; found by " + a.members.self.Name}
		if err := a.store.DoubtHistory(ctx, r, alert); err != nil {
			a.log.Warn("other nodes cannot be told that the database was rolled back", "component", "history", "err", err)
		} else {
			h.history = true
			a.alerting.Nudge()
		}
	}
	h.history = h.history && held
	a.saveHistory(h)
}

// renewSessions ends the sessions that began before an operator accepted a
// database that has lost commits, whether or not this node has noticed that it
// did: the database may call attempts running whose results were taken over
// before, and may not know instances. Executors tell when they come back.
func (a *Admin) renewSessions(h *holds) {
	known := a.store.KnownHistory()
	if known == (domain.History{}) {
		return // nothing was heard of the database yet
	}
	if known.Epoch > h.epoch && (h.begun || h.logged) {
		a.gateway.RenewSessions()
	}
	h.epoch, h.begun = known.Epoch, true
}

// tellClock leaves word for nodes that start later, and tells the operators.
func (a *Admin) tellClock(ctx context.Context, h scheduler.Hold, held bool) error {
	var err error
	if held {
		err = a.store.HoldClock(ctx, h.Jump, domain.AlertEvent{
			Kind: domain.AlertClockJump, CreatedAt: h.At,
			Detail: fmt.Sprintf("it leapt by %s, and %s is the last time that is believed; found by %s",
				h.Jump.Round(time.Millisecond), h.At.UTC().Format(time.RFC3339), a.members.self.Name),
		})
	} else {
		err = a.store.SetClusterValue(ctx, domain.ClockHoldValue, "")
	}
	if err != nil {
		a.log.Warn("the clock's state cannot be written", "component", "clock", "err", err)
		return err
	}
	a.alerting.Nudge()
	return nil
}

// saveHistory writes down what is known, also while the database is not
// believed: the next life of this node is to doubt it too.
func (a *Admin) saveHistory(h *holds) {
	known := a.store.KnownHistory()
	if known == h.saved || time.Since(h.savedAt) < historySave {
		return
	}
	h.savedAt = time.Now()
	part := a.historyPath + ".part"
	err := os.WriteFile(part, []byte(a.clusterID+" "+known.String()+"\n"), 0o600)
	if err == nil {
		err = os.Rename(part, a.historyPath)
	}
	if err != nil {
		if !h.unsaved {
			a.log.Warn("what is known of the database cannot be written down", "component", "history", "err", err)
		}
		h.unsaved = true
		return
	}
	h.saved, h.unsaved = known, false
}

// rolledBack reports whether the database has lost commits, and no operator has accepted it.
func (a *Admin) rolledBack() bool {
	_, held := a.store.RolledBack()
	return held
}

// partitionsHeld is what the node may plan: nothing while it does not believe
// the database's clock, or the database.
func (a *Admin) partitionsHeld() []domain.PartitionTerm {
	if a.clockHeld() || a.rolledBack() {
		return nil
	}
	return a.leases.Held()
}
