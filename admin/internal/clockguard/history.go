package clockguard

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
	// tellTimeout bounds one look.
	tellTimeout = time.Second
	// historySave is how often it writes down how far the history reaches: what
	// a restarted node may not notice to be lost.
	historySave = time.Second
	// historyFile in the data directory outlives the process. It names the
	// cluster, so that another database is not taken for an old copy of this one.
	historyFile = "history"
)

// told is what people and other nodes know of why firing is held.
type told struct {
	clock   scheduler.Hold // the last one that they know; zero = there is none
	history bool           // they know it
	logged  bool           // the finding about the history
	epoch   int64          // of the history that the sessions began in
	begun   bool           // epoch is known
	saved   domain.History
	savedAt time.Time
	unsaved bool // the log has that this fails
}

func (g *Guard) openHistory(ctx context.Context) error {
	known, err := KnownHistory(g.opt.DataDir, g.opt.Cluster)
	if err != nil {
		return fmt.Errorf("read what is known of the database: %w", err)
	}
	if known != (domain.History{}) {
		g.opt.Store.RememberHistory(known)
	}
	if _, err := g.opt.Store.ReadPartitions(ctx); err != nil {
		return fmt.Errorf("compare the database with what is known of it: %w", err)
	}
	return nil
}

// KnownHistory is what a node with this data directory has written down of a
// cluster's database; zero = nothing.
func KnownHistory(dataDir, cluster string) (domain.History, error) {
	raw, err := os.ReadFile(filepath.Join(dataDir, historyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return domain.History{}, err
	}
	if of, known, ok := strings.Cut(strings.TrimSpace(string(raw)), " "); ok && of == cluster {
		return domain.ParseHistory(known), nil
	}
	return domain.History{}, nil
}

// Run tells of doubts and saves the history until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	tick := time.NewTicker(holdLook)
	defer tick.Stop()
	for {
		g.look(ctx)
		select {
		case <-ctx.Done():
			g.told.savedAt = time.Time{}
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
			g.look(last) // what is not told dies with this process
			cancel()
			return
		case <-tick.C:
		}
	}
}

func (g *Guard) look(ctx context.Context) {
	h := &g.told
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if hold, held := g.clock.Held(); hold != h.clock { // also when it leapt again
		if err := g.tellClock(ctx, hold, held); err == nil {
			h.clock = hold
		}
	}
	r, held := g.opt.Store.RolledBack()
	if held && !h.logged {
		g.opt.RolledBack()
		g.opt.Logger.Error("db_rollback: the database has lost what it had committed, and nothing is started until an operator has decided "+
			"(carillon cluster accept-history)", "component", "history", "reason", r.Reason(), "seen", r.Seen.String(), "found", r.Found.String())
	}
	if !held && h.logged {
		g.opt.Logger.Warn("firing goes on: an operator has accepted the database as it is", "component", "history")
	}
	g.renewSessions(h)
	h.logged = held
	if held && !h.history {
		alert := domain.AlertEvent{Kind: domain.AlertRollback, Detail: r.Reason() + "; found by " + g.opt.Node}
		if err := g.opt.Store.DoubtHistory(ctx, r, alert); err != nil {
			g.opt.Logger.Warn("other nodes cannot be told that the database was rolled back", "component", "history", "err", err)
		} else {
			h.history = true
			g.opt.Told()
		}
	}
	h.history = h.history && held
	g.saveHistory(h)
}

// renewSessions ends the sessions that began before an operator accepted a
// database that has lost commits, whether or not this node has noticed that it
// did: the database may call attempts running whose results were taken over
// before, and may not know instances. Executors tell when they come back.
func (g *Guard) renewSessions(h *told) {
	known := g.opt.Store.KnownHistory()
	if known == (domain.History{}) {
		return // nothing was heard of the database yet
	}
	if known.Epoch > h.epoch && (h.begun || h.logged) {
		g.opt.RenewSessions()
	}
	h.epoch, h.begun = known.Epoch, true
}

// tellClock leaves word for nodes that start later, and tells the operators.
func (g *Guard) tellClock(ctx context.Context, h scheduler.Hold, held bool) error {
	var err error
	if held {
		err = g.opt.Store.HoldClock(ctx, h.Jump, domain.AlertEvent{
			Kind: domain.AlertClockJump, CreatedAt: h.At,
			Detail: fmt.Sprintf("it leapt by %s, and %s is the last time that is believed; found by %s",
				h.Jump.Round(time.Millisecond), h.At.UTC().Format(time.RFC3339), g.opt.Node),
		})
	} else {
		err = g.opt.Store.SetClusterValue(ctx, domain.ClockHoldValue, "")
	}
	if err != nil {
		g.opt.Logger.Warn("the clock's state cannot be written", "component", "clock", "err", err)
		return err
	}
	g.opt.Told()
	return nil
}

// saveHistory writes down what is known, also while the database is not
// believed: the next life of this node is to doubt it too.
func (g *Guard) saveHistory(h *told) {
	known := g.opt.Store.KnownHistory()
	if known == h.saved || time.Since(h.savedAt) < historySave {
		return
	}
	h.savedAt = time.Now()
	part := g.path + ".part"
	err := os.WriteFile(part, []byte(g.opt.Cluster+" "+known.String()+"\n"), 0o600)
	if err == nil {
		err = os.Rename(part, g.path)
	}
	if err != nil {
		if !h.unsaved {
			g.opt.Logger.Warn("what is known of the database cannot be written down", "component", "history", "err", err)
		}
		h.unsaved = true
		return
	}
	h.saved, h.unsaved = known, false
}
