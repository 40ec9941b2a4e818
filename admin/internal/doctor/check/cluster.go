package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/internal/spelling"
	"github.com/carillon-sched/carillon/schedule"
)

// clockWarn is how far a clock may be off without a warning.
// Beyond scheduler.MaxJump a node's clock confirms none of the database's.
const clockWarn = scheduler.MaxJump / 2

func (e *examination) lookAtClock(ctx context.Context) ([]doctor.Result, error) {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite uses this machine's clock")}, nil
	}
	offset, bound, err := e.store.ClockOffset(ctx)
	return []doctor.Result{judgeClock("the database's clock", offset, bound)}, err
}

func judgeClock(whose string, offset, bound time.Duration) doctor.Result {
	direction := "ahead of"
	if offset < 0 {
		direction = "behind"
	}
	said := fmt.Sprintf("%s is %s %s this machine's, within %s", whose, offset.Abs().Round(time.Millisecond), direction, bound.Round(time.Millisecond))
	if offset.Abs()-bound > clockWarn {
		return doctor.Warn("clocks_differ", "Synchronise both machines (chrony, systemd-timesyncd): runs go by the database's clock, and a node whose own is more than a second off cannot confirm it after a leap.", "%s", said)
	}
	return doctor.Passed("%s", said)
}

func (e *examination) lookAtNodesClocks(ctx context.Context) ([]doctor.Result, error) {
	table, err := e.store.ReadPartitions(ctx)
	return judgeNodesClocks(table), err
}

func judgeNodesClocks(table domain.PartitionTable) (out []doctor.Result) {
	for i := range table.Nodes {
		n := &table.Nodes[i]
		if n.ClockSkew.Abs() > clockWarn {
			out = append(out, doctor.Warn("clocks_differ", "Synchronise that machine (chrony, systemd-timesyncd).", "the clock of node %s is %s off the database's", n.Name, n.ClockSkew))
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(table.Nodes) == 0:
		return []doctor.Result{doctor.Skip("no node runs")}
	}
	return []doctor.Result{doctor.Passed("those of all nodes (%d) agree with the database's", len(table.Nodes))}
}

func (e *examination) lookAtCluster(ctx context.Context) ([]doctor.Result, error) {
	table, failed := e.store.ReadPartitions(ctx)
	values, err := e.store.ClusterValues(ctx)
	return judgeCluster(table, values), errors.Join(failed, err)
}

func judgeCluster(table domain.PartitionTable, values map[string]string) (out []doctor.Result) {
	if values[domain.ClockHoldValue] != "" {
		out = append(out, doctor.Fail("clock_jump", "Look at the database's clock; when it is right: carillon cluster confirm-clock", "firing is held: the database's clock leapt by %s ms", values[domain.ClockHoldValue]))
	}
	if (table.Doubted != domain.Doubt{}) && table.Doubted.Epoch >= table.History.Epoch {
		out = append(out, doctor.Fail("db_rollback", "Put back a newer copy, or accept what is lost: carillon cluster accept-history (docs/guide/operations.md)", "firing is held: the database has lost commits"))
	}
	var nodes []string
	for i := range table.Nodes {
		nodes = append(nodes, table.Nodes[i].Name+" ("+table.Nodes[i].Version+")")
	}
	switch {
	case len(out) > 0:
		return out
	case len(nodes) == 0:
		return []doctor.Result{doctor.Skip("no node runs")}
	}
	return []doctor.Result{doctor.Passed("nodes: %s; nothing is held", strings.Join(nodes, ", "))}
}

func (e *examination) lookAtZones(ctx context.Context) ([]doctor.Result, error) {
	table, err := e.store.ReadPartitions(ctx)
	return judgeZones(domain.ZoneRules(schedule.CurrentZoneRules()), table), err
}

func judgeZones(ours domain.ZoneRules, table domain.PartitionTable) (out []doctor.Result) {
	for i := range table.Nodes {
		if n := &table.Nodes[i]; n.Zones.Digest != "" && n.Zones.Digest != ours.Digest {
			out = append(out, doctor.Warn("zones_differ", "Bring all machines to the same version of tzdata and restart the nodes (docs/guide/time-zones.md).",
				"this machine has the rules %s, and node %s has %s: they may plan other fire times", ours, n.Name, n.Zones))
		}
	}
	if len(out) == 0 {
		out = append(out, doctor.Passed("%s", ours))
	}
	return out
}

// lookAtSecrets holds the sealing key against the cluster's, and tries it on what
// is sealed.
func (e *examination) lookAtSecrets(ctx context.Context) []doctor.Result {
	values, authorities, sealed := map[string]string{}, []domain.Authority(nil), []Sealed(nil)
	if e.tables() {
		var errs [2]error
		values, errs[0] = e.store.ClusterValues(ctx)
		authorities, errs[1] = e.store.ListAuthorities(ctx)
		err := errors.Join(errs[:]...)
		for _, m := range e.More {
			if m.Sealed == nil {
				continue
			}
			if more, failed := m.Sealed(ctx, e.store); failed == nil {
				sealed = append(sealed, more...)
			} else {
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			return unasked(ctx, err)
		}
	}
	known := values[secret.FingerprintValue]
	box, err := secret.Read(os.Getenv(secret.EnvKey), e.SealingKeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known == "":
		return []doctor.Result{doctor.Passed("%s is not there yet, the first start makes it; nodes of one database need the same", e.SealingKeyFile)}
	case errors.Is(err, fs.ErrNotExist):
		return []doctor.Result{doctor.Fail("sealing_key_missing", "Copy it from the data folder of a working node, or from the backup, with mode 600.",
			"%s is missing, and the database holds what was sealed with it", e.SealingKeyFile)}
	case err != nil:
		return []doctor.Result{doctor.Fail("sealing_key_unusable", "Give the server's user the key of the other nodes, with mode 600.", "%v", err)}
	case known != "" && box.Fits(known) != nil:
		return []doctor.Result{doctor.Fail("sealing_key_of_another_cluster", "Copy it from the data folder of a working node, or name the right file with --sealing-key-file.", "%v", box.Fits(known))}
	}
	opened, broken := 0, []string{}
	try := func(what string, tenant domain.TenantID, purpose string, id int64, sealed []byte) {
		if len(sealed) == 0 {
			return
		}
		if _, err := box.Open(tenant, purpose, id, sealed); err != nil {
			broken = append(broken, what)
		} else {
			opened++
		}
	}
	for _, a := range authorities {
		try("the key of the executors' authority", 0, secret.PurposeExecutorAuthority, a.ID, a.SealedKey)
	}
	for _, s := range sealed {
		try(s.What, s.Tenant, s.Purpose, s.ID, s.Bytes)
	}
	if len(broken) > 0 {
		return []doctor.Result{doctor.Fail("sealed_unreadable", "Somebody has changed these rows, or put them back from elsewhere: enter the secrets again.",
			"the key is the cluster's, and %s do not open", strings.Join(broken, ", "))}
	}
	return []doctor.Result{doctor.Passed("the sealing key is the cluster's; it opened %s", spelling.Count(opened, "sealed value", ""))}
}
