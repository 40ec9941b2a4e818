package admin

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// zoneWatchEvery is how often a node compares its rules of time zones with those
// of the others: they change with a start of a node only.
const zoneWatchEvery = 30 * time.Second

// zoneWatch logs when nodes have different rules of time zones, and when they
// have the same again. It is used by one goroutine.
type zoneWatch struct {
	read func(context.Context) (domain.PartitionTable, error)
	log  *slog.Logger
	told string
}

func (w *zoneWatch) look(ctx context.Context) error {
	table, err := w.read(ctx)
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
		w.log.Info("all nodes have the same rules of time zones")
	default:
		w.log.Warn("nodes have different rules of time zones: one may plan other fire times than the next (docs/guide/time-zones.md)", "nodes", text)
	}
	w.told = text
	return nil
}
