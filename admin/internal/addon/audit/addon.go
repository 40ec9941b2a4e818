// Package audit answers: who changed what, and did somebody change the record of it?
//
// The core stores an entry in the transaction of each change (domain.PendingAudit). This
// package stores the refusals (refusal.go), chains the entries (table.go, chain.go), keeps the
// ends of the chains outside of the database (keeper.go), deletes old entries, and lists and
// verifies them (route.go). Each entry is stored with a mark of the writing node, a keyed hash
// that chaining checks. docs/adr/0100 says what the chain shows and what it does not.
package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// retention is the setting of how long entries are kept.
const retention = "audit-retention"

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "audit", Check: check, Build: build,
		Settings: []addon.Setting{{
			Name: retention, Default: "9600h", Kind: addon.Duration, Usage: "how long the audit log is kept, at least 24h",
		}},
	}
}

func check(v addon.Values) error {
	if v.Duration(retention) < 24*time.Hour {
		return fmt.Errorf("invalid value %q of %s: use a duration of at least 24h, such as 9600h", v.Text(retention), retention)
	}
	return nil
}

func build(n addon.Node) (addon.Parts, error) {
	log := n.Logger.With("component", "audit")
	table := NewTable(n.DB, n.Secrets)
	var keeper *keeper
	table.Forged = func(tenant domain.TenantID, ids []int64) {
		keeper.forged.Add(float64(len(ids)))
		log.Error("audit entries forged: no node has written them; run carillon audit verify", "tenant_id", tenant, "count", len(ids), "first_id", ids[0])
	}
	keeper = newKeeper(keeperOptions{Table: table, DataDir: n.DataDir, Kept: n.Settings.Duration(retention), Leads: n.Leads, Metrics: n.Metrics, Logger: log})
	refusals := newRefusals(n.Metrics, log, table.Record)
	return addon.Parts{
		Audited: true,
		Run:     func(ctx context.Context) error { keeper.Run(ctx); return nil },
		Routes: func(s *web.Server) {
			s.Audit(func(ctx context.Context, e domain.AuditEntry) { refusals.take(ctx, e, time.Now()) })
			Routes(s, table)
		},
	}, nil
}
