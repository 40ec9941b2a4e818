package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ClockConfirmed is the cluster value that ConfirmClock writes, in milliseconds.
const ClockConfirmed = "clock_confirmed"

// ReadPartitions reads on the connection that renews, so that a node which
// sees the table could also have renewed.
func (s *Partitions) ReadPartitions(ctx context.Context) (table domain.PartitionTable, err error) {
	pool := s.Leases
	if s.Read != s.Write {
		pool = s.Read // SQLite: readers do not wait for the writer
	}
	marks := s.Rollbacks.Marks()
	if table, err = s.readPartitions(ctx, pool); err != nil {
		return table, db.Translate("read partitions", err)
	}
	s.Rollbacks.Judge(marks, table.History, table.Doubted, 0)
	return table, nil
}

func (s *Partitions) readPartitions(ctx context.Context, q db.Querier) (table domain.PartitionTable, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var l domain.PartitionLease
		var mark int64
		var epoch, doubt string
		err := rows.Scan(db.At(&table.Now), db.At(&table.ClockConfirmedAt), &epoch, &doubt, &mark, &l.Partition, &l.Node, &l.BootID, &l.Term, db.At(&l.Until))
		if err != nil {
			return err
		}
		table.Leases = append(table.Leases, l)
		table.History, table.Doubted, err = db.HistoryOf(epoch, doubt, mark)
		return err
	}, "SELECT "+s.Dialect.ClockNow()+", COALESCE((SELECT CAST(value AS SIGNED) FROM cluster_values WHERE name = '"+ClockConfirmed+"'), 0), "+
		db.HistoryColumns()+", part, node_id, boot_id, term, lease_until FROM partition_leases ORDER BY part")
	if err != nil {
		return table, err
	}
	if len(table.Leases) != domain.Partitions {
		return table, fmt.Errorf("partition_leases has %d rows instead of %d", len(table.Leases), domain.Partitions)
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var n domain.NodeStatus
		var skew, held, connected int64
		err := rows.Scan(&n.ID, &n.BootID, &n.Name, &n.ExecutorAddress, &n.Version, db.At(&n.StartedAt), db.At(&n.HeartbeatAt), &n.Sessions,
			&n.Zones.Source, &n.Zones.Version, &n.Zones.Digest, db.At(&n.RenewedAt), &skew, &held, &connected)
		n.ClockSkew, n.ClockHeld, n.Connected = time.Duration(skew)*time.Millisecond, held != 0, connected != 0
		table.Nodes = append(table.Nodes, n)
		return err
	}, "SELECT n.id, n.boot_id, n.name, n.executor_address, n.version, n.started_at, n.heartbeat_at, n.sessions, n.zone_source, n.zone_version, n.zone_digest,"+
		" CASE WHEN s.renewed_at > 0 THEN s.renewed_at ELSE 0 END, COALESCE(s.skew, 0), COALESCE(s.held, 0), "+s.Dialect.Connected("n.boot_id")+
		" FROM nodes n LEFT JOIN node_states s ON s.node_id = n.id AND s.boot_id = n.boot_id"+
		" WHERE n.gone_at = 0 AND n.heartbeat_at > "+s.Dialect.ClockNow()+fmt.Sprintf(" - %d", store.NodesShown.Milliseconds())+" ORDER BY n.id")
	return table, err
}

// RenewPartitions makes its writes and reads one transaction, so that a node's
// sign of life and its leases end together.
func (s *Partitions) RenewPartitions(ctx context.Context, p store.RenewPartitionsParams) (table domain.PartitionTable, err error) {
	marks := s.Rollbacks.Marks()
	table, err = db.Value(ctx, s.RenewTx, "renew partitions", func(t *db.Tx) (table domain.PartitionTable, err error) {
		if err := t.Dialect.Connect(t, p.BootID); err != nil {
			return table, fmt.Errorf("show the session: %w", err)
		}
		if err := noteReturn(t); err != nil {
			return table, fmt.Errorf("note the end of an absence: %w", err)
		}
		if err := noteState(t, p); err != nil {
			return table, fmt.Errorf("note the node's state: %w", err)
		}
		if len(p.Held) > 0 {
			_, err = t.Exec(t.Ctx, "UPDATE partition_leases"+t.Dialect.ByPrimary()+" SET lease_until = "+t.Dialect.Clock()+" + ? WHERE ("+terms(p.Held)+")",
				p.TTL.Milliseconds())
			if err != nil {
				return table, err
			}
		}
		if table, err = s.readPartitions(t.Ctx, t.Conn); err == nil {
			s.Rollbacks.Judge(marks, table.History, table.Doubted, 0) // before the commit, which revives leases
		}
		return table, err
	})
	if err == nil {
		s.Rollbacks.Remember(table.History) // what it had read is durable with it
	}
	return table, err
}

// noteState writes the sign of life, and how far the node's clock is from the
// database's; that is too little by the time that the message took to come.
func noteState(t *db.Tx, p store.RenewPartitionsParams) error {
	args := []any{db.Millis(p.Wall), db.Flag(p.ClockHeld), p.BootID, int64(p.Node)}
	found, err := t.Exec(t.Ctx, "UPDATE node_states SET beats = beats + 1, renewed_at = "+t.Dialect.Clock()+", skew = ? - "+t.Dialect.Clock()+
		", held = ?, boot_id = ? WHERE node_id = ?", args...)
	if err != nil || found > 0 {
		return err
	}
	_, err = t.Exec(t.Ctx, "INSERT INTO node_states (beats, renewed_at, skew, held, boot_id, node_id) VALUES (1, "+
		t.Dialect.Clock()+", ? - "+t.Dialect.Clock()+", ?, ?, ?)", args...)
	return err
}

// terms is a condition for leases whose term is still the highest. Each of its
// parts is one row of the primary key, so that no other node's row is locked.
func terms(list []domain.PartitionTerm) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString("part = " + strconv.Itoa(p.Partition) + " AND term = " + strconv.FormatInt(p.Term, 10))
	}
	return b.String()
}

// AcquirePartitions passes over rows that a claim or another node has locked.
func (s *Partitions) AcquirePartitions(ctx context.Context, p store.AcquirePartitionsParams) ([]domain.PartitionLease, error) {
	if len(p.Want) == 0 {
		return nil, nil
	}
	return db.Value(ctx, s.LeaseTx, "acquire partitions", func(t *db.Tx) (got []domain.PartitionLease, err error) {
		var parts []int64
		var until int64
		ttl := p.TTL.Milliseconds()
		err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			l := domain.PartitionLease{Node: p.Node, BootID: p.BootID}
			var now int64
			err := rows.Scan(&now, &l.Partition, &l.Term)
			until = now + ttl
			l.Term, l.Until = l.Term+1, db.Instant(until)
			got, parts = append(got, l), append(parts, int64(l.Partition))
			return err
		}, "SELECT "+t.Dialect.ClockNow()+", part, term FROM partition_leases"+t.Dialect.ByPrimary()+" WHERE ("+terms(p.Want)+
			") AND (lease_until <= "+t.Dialect.ClockNow()+" OR lease_until > "+t.Dialect.ClockNow()+" + ?) ORDER BY part"+t.Dialect.ForUpdateSkip(), 2*ttl)
		if err != nil || len(parts) == 0 {
			return got, err
		}
		_, err = t.Exec(t.Ctx, "UPDATE partition_leases"+t.Dialect.ByPrimary()+" SET node_id = ?, boot_id = ?, term = term + 1, lease_until = ? WHERE part IN ("+db.IDList(parts)+")",
			int64(p.Node), p.BootID, until)
		return got, err
	})
}

func (s *Partitions) ReleasePartitions(ctx context.Context, p store.ReleasePartitionsParams) ([]domain.PartitionTerm, error) {
	return db.Value(ctx, s.LeaseTx, "release partitions", func(t *db.Tx) (ended []domain.PartitionTerm, err error) {
		if p.Leaving {
			if _, err := t.Exec(t.Ctx, "UPDATE node_states SET renewed_at = -"+t.Dialect.Clock()+" WHERE boot_id = ?", p.BootID); err != nil {
				return ended, err
			}
		}
		if len(p.Held) == 0 {
			return nil, nil
		}
		ended, err = db.Select(t.Ctx, t.Conn, func(h *domain.PartitionTerm) []any { return []any{&h.Partition, &h.Term} },
			"SELECT part, term FROM partition_leases"+t.Dialect.ByPrimary()+" WHERE ("+terms(p.Held)+") AND boot_id = ? ORDER BY part"+t.Dialect.ForUpdateSkip(), p.BootID)
		if err != nil || len(ended) == 0 {
			return ended, err
		}
		parts := domain.Collect(ended, func(h *domain.PartitionTerm) int64 { return int64(h.Partition) })
		holder := ""
		if p.Leaving {
			holder = ", node_id = 0, boot_id = ''"
		}
		_, err = t.Exec(t.Ctx, "UPDATE partition_leases"+t.Dialect.ByPrimary()+" SET lease_until = 0"+holder+" WHERE part IN ("+db.IDList(parts)+")")
		return ended, err
	})
}

// ListPlanned reads the index of the sweep: what was planned wakes PickupGrace
// after its time.
func (s *Partitions) ListPlanned(ctx context.Context, p store.ListPlannedParams) (out []domain.Execution, err error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	until := s.Dialect.ClockNow() + fmt.Sprintf(" + %d", (p.Horizon+domain.PickupGrace).Milliseconds())
	which := fmt.Sprintf("state IN (%d, %d) AND reason NOT IN ('%s', '%s', '%s')",
		domain.Due, domain.RetryWait, domain.ReasonWaitSlot, domain.ReasonWaitLimit, domain.ReasonMaintenance)
	var list []string
	add := func(parts []int, which string) {
		for _, part := range parts {
			list = append(list, s.Dialect.Bounded(fmt.Sprintf(
				"SELECT %s FROM executions%s WHERE part = %d AND wake_at <= %s AND %s ORDER BY wake_at LIMIT %d",
				record.ExecutionColumns, s.Dialect.ByIndex("ix_executions_wake"), part, until, which, p.Limit)))
		}
	}
	if len(p.OfferedBy) > 0 {
		offers := fmt.Sprintf("(state = %d OR state = %d AND idempotent = 1 AND started_at = 0) AND node_id IN (%s)",
			domain.Offered, domain.Running, db.IDList(p.OfferedBy))
		add(p.OffersOnly, offers)
		which = fmt.Sprintf("(%s OR %s)", which, offers)
	}
	add(p.Partitions, which)
	if len(list) == 0 {
		return nil, nil
	}
	rows, err := db.Select(ctx, s.Lookup, func(r *record.ExecutionRow) []any { return record.ExecutionTable.Targets(r) }, strings.Join(list, " UNION ALL "))
	out = domain.Collect(rows, (*record.ExecutionRow).Execution)
	if err == nil && len(p.OfferedBy) > 0 {
		out, err = s.unlocked(ctx, out)
	}
	if err == nil {
		out, err = s.mayResend(ctx, out)
	}
	return out, db.Translate("list planned executions", err)
}

// unlocked leaves out what a transaction has locked, such as one of the node
// that is frozen: whoever took it on would wait for the end of the lock, with
// all that is in the same batch. It is swept later.
func (s *Partitions) unlocked(ctx context.Context, list []domain.Execution) ([]domain.Execution, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids := domain.Collect(list, func(l *domain.Execution) domain.ExecutionID { return l.ID })
	slices.Sort(ids)
	free, err := db.Set[domain.ExecutionID](ctx, s.Lookup,
		"SELECT id FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+")"+s.Dialect.ForUpdateSkip())
	return slices.DeleteFunc(list, func(e domain.Execution) bool { return !free[e.ID] }), err
}

// VerifyTerms is the fence of a claim. It runs last, so that the share locks
// on the lease rows, which keep others from taking over before the commit,
// are held for one round trip and a commit only: a renewal waits no longer
// than that, and a claim that is frozen half-way keeps nobody out.
func VerifyTerms(t *db.Tx, held []domain.PartitionTerm) error {
	parts := make([]int64, len(held))
	for i, h := range held {
		parts[i] = int64(h.Partition)
	}
	highest, err := db.Pairs[int, int64](t.Ctx, t.Conn,
		"SELECT part, term FROM partition_leases"+t.Dialect.ByPrimary()+" WHERE part IN ("+db.IDList(parts)+") AND lease_until > "+t.Dialect.ClockNow()+t.Dialect.ForShare())
	if err != nil {
		return fmt.Errorf("verify terms: %w", err)
	}
	valid := 0
	for _, h := range held {
		if term, ok := highest[h.Partition]; ok && term == h.Term {
			valid++
		}
	}
	if valid != len(held) {
		return domain.Errorf(domain.CodeStaleTerm, "%d of %d partitions are not held any more", len(held)-valid, len(held))
	}
	return nil
}

// mayResend leaves out the one-step offers that are not to be sent again,
// because their jobs were stopped: the sweep asks their instances.
func (s *Partitions) mayResend(ctx context.Context, list []domain.Execution) ([]domain.Execution, error) {
	var jobs []domain.JobID
	for _, e := range list {
		if e.State == domain.Running {
			jobs = append(jobs, e.JobID)
		}
	}
	if len(jobs) == 0 {
		return list, nil
	}
	stopped, err := stoppedJobs(ctx, s.Lookup, jobs)
	return slices.DeleteFunc(list, func(e domain.Execution) bool {
		return e.State == domain.Running && !stopped.MayResend(&e)
	}), err
}
