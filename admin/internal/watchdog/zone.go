package watchdog

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ZonesEvery is how often a node compares its rules of time zones with those
// of the others: they change with a start of a node only.
const ZonesEvery = 30 * time.Second

// Zones logs when nodes have different rules of time zones, and when they
// have the same again. It is used by one goroutine.
type Zones struct {
	Store interface {
		ReadPartitions(ctx context.Context) (domain.PartitionTable, error)
	}
	Logger *slog.Logger
	told   string
}

// Look compares them.
func (w *Zones) Look(ctx context.Context) error {
	table, err := w.Store.ReadPartitions(ctx)
	if err != nil {
		return err
	}
	text := ""
	if table.ZonesDiffer() {
		var all []string
		for i := range table.Nodes {
			if n := &table.Nodes[i]; n.Zones.Digest != "" {
				all = append(all, n.Name+": "+n.Zones.String())
			}
		}
		text = strings.Join(all, "; ")
	}
	switch {
	case text == w.told:
	case text == "":
		w.Logger.Info("all nodes have the same rules of time zones")
	default:
		w.Logger.Warn("nodes have different rules of time zones: one may plan other fire times than the next (docs/guide/time-zones.md)", "nodes", text)
	}
	w.told = text
	return nil
}
