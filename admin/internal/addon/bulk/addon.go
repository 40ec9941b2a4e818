// Package bulk answers: how is one action done with many jobs or runs?
//
// An operation is a row with a filter and a cursor (operation.go, table.go). A request makes
// it (route.go). Any node works on it page by page (selection.go, worker.go), decides about
// each item (decide.go), and stores the answers of those that were skipped or have failed.
// Each item gets one answer, also if a node stops in the middle (docs/adr/0099).
package bulk

import (
	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "bulk", Build: build,
		Tables: []db.OwnedTable{{Name: "bulk_operations", Key: "id", Column: "operation_id", Children: []string{"bulk_items"}, Late: true, Wake: "wake_at"}},
	}
}

func build(n addon.Node) (addon.Parts, error) {
	log := n.Logger.With("component", "bulk")
	selection := Selection{Table: Table{n.DB}, Jobs: n.Jobs, Runs: n.Runs}
	worker := NewWorker(selection, log)
	return addon.Parts{
		Routes: func(s *web.Server) {
			Routes(s, Deps{Selection: selection, NewID: n.NewID, Made: worker.Nudge, Log: log})
		},
		Intake: worker.Run,
	}, nil
}
