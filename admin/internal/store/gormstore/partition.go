package gormstore

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
)

// ReadPartitions reads on the connection that renews, so that a node which
// sees the table could also have renewed.
func (s *Partitions) ReadPartitions(ctx context.Context) (table domain.PartitionTable, err error) {
	pool := s.leases
	if s.read != s.write {
		pool = s.read // SQLite: readers do not wait for the writer
	}
	marks := s.rollbacks.marks()
	if table, err = s.readPartitions(ctx, pool); err != nil {
		return table, translate("read partitions", err)
	}
	s.rollbacks.judge(marks, table.History, table.Doubted, 0)
	return table, nil
}

func (s *Partitions) readPartitions(ctx context.Context, q querier) (table domain.PartitionTable, err error) {
	err = query(ctx, q, func(rows *sql.Rows) error {
		var l domain.PartitionLease
		var now, confirmed, until, mark int64
		var epoch, doubt string
		err := rows.Scan(&now, &confirmed, &epoch, &doubt, &mark, &l.Partition, &l.Node, &l.BootID, &l.Term, &until)
		if err != nil {
			return err
		}
		table.Now, table.ClockConfirmedAt, l.Until = instant(now), instant(confirmed), instant(until)
		table.Leases = append(table.Leases, l)
		table.History, table.Doubted, err = historyOf(epoch, doubt, mark)
		return err
	}, "SELECT "+s.d.clockNow()+", COALESCE((SELECT CAST(value AS SIGNED) FROM cluster_values WHERE name = '"+clockConfirmed+"'), 0), "+
		historyColumns()+", part, node_id, boot_id, term, lease_until FROM partition_leases ORDER BY part")
	if err != nil {
		return table, err
	}
	if len(table.Leases) != domain.Partitions {
		return table, fmt.Errorf("partition_leases has %d rows instead of %d", len(table.Leases), domain.Partitions)
	}
	err = query(ctx, q, func(rows *sql.Rows) error {
		var n domain.NodeStatus
		var started, heartbeat, renewed, skew, held, connected int64
		err := rows.Scan(&n.ID, &n.BootID, &n.Name, &n.ExecutorAddress, &n.Version, &started, &heartbeat, &n.Sessions, &n.Zones.Source, &n.Zones.Version, &n.Zones.Digest, &renewed, &skew, &held, &connected)
		n.StartedAt, n.HeartbeatAt, n.RenewedAt = instant(started), instant(heartbeat), instant(renewed)
		n.ClockSkew, n.ClockHeld, n.Connected = time.Duration(skew)*time.Millisecond, held != 0, connected != 0
		table.Nodes = append(table.Nodes, n)
		return err
	}, "SELECT n.id, n.boot_id, n.name, n.executor_address, n.version, n.started_at, n.heartbeat_at, n.sessions, n.zone_source, n.zone_version, n.zone_digest,"+
		" COALESCE(s.renewed_at, 0), COALESCE(s.skew, 0), COALESCE(s.held, 0), "+s.d.connected("n.boot_id")+
		" FROM nodes n LEFT JOIN node_states s ON s.node_id = n.id AND s.boot_id = n.boot_id"+
		" WHERE n.gone_at = 0 AND n.heartbeat_at > "+s.d.clockNow()+fmt.Sprintf(" - %d", store.NodesShown.Milliseconds())+" ORDER BY n.id")
	return table, err
}

// RenewPartitions makes its writes and reads one transaction, so that a node's
// sign of life and its leases end together.
func (s *Partitions) RenewPartitions(ctx context.Context, p store.RenewPartitionsParams) (table domain.PartitionTable, err error) {
	marks := s.rollbacks.marks()
	err = s.leaseTx(ctx, "renew partitions", func(t *txn) error {
		if err := t.d.connect(t, p.BootID); err != nil {
			return fmt.Errorf("show the session: %w", err)
		}
		if err := noteState(t, p); err != nil {
			return fmt.Errorf("note the node's state: %w", err)
		}
		if len(p.Held) > 0 {
			_, err = t.exec(t.ctx, "UPDATE partition_leases"+t.d.byPrimary()+" SET lease_until = "+t.d.clock()+" + ? WHERE ("+terms(p.Held)+")",
				p.TTL.Milliseconds())
			if err != nil {
				return err
			}
		}
		if table, err = s.readPartitions(t.ctx, t.q); err == nil {
			s.rollbacks.judge(marks, table.History, table.Doubted, 0) // before the commit, which revives leases
		}
		return err
	})
	if err == nil {
		s.rollbacks.remember(table.History) // what it had read is durable with it
	}
	return table, err
}

// noteState writes the sign of life, and how far the node's clock is from the
// database's; that is too little by the time that the message took to come.
func noteState(t *txn, p store.RenewPartitionsParams) error {
	args := []any{millis(p.Wall), flag(p.ClockHeld), p.BootID, int64(p.Node)}
	found, err := t.exec(t.ctx, "UPDATE node_states SET beats = beats + 1, renewed_at = "+t.d.clock()+", skew = ? - "+t.d.clock()+
		", held = ?, boot_id = ? WHERE node_id = ?", args...)
	if err != nil || found > 0 {
		return err
	}
	_, err = t.exec(t.ctx, "INSERT INTO node_states (beats, renewed_at, skew, held, boot_id, node_id) VALUES (1, "+
		t.d.clock()+", ? - "+t.d.clock()+", ?, ?, ?)", args...)
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
func (s *Partitions) AcquirePartitions(ctx context.Context, p store.AcquirePartitionsParams) (got []domain.PartitionLease, err error) {
	if len(p.Want) == 0 {
		return nil, nil
	}
	err = s.leaseTx(ctx, "acquire partitions", func(t *txn) error {
		got = got[:0]
		var parts []int64
		var until int64
		ttl := p.TTL.Milliseconds()
		err := query(t.ctx, t.q, func(rows *sql.Rows) error {
			l := domain.PartitionLease{Node: p.Node, BootID: p.BootID}
			var now int64
			err := rows.Scan(&now, &l.Partition, &l.Term)
			until = now + ttl
			l.Term, l.Until = l.Term+1, instant(until)
			got, parts = append(got, l), append(parts, int64(l.Partition))
			return err
		}, "SELECT "+t.d.clockNow()+", part, term FROM partition_leases"+t.d.byPrimary()+" WHERE ("+terms(p.Want)+
			") AND (lease_until <= "+t.d.clockNow()+" OR lease_until > "+t.d.clockNow()+" + ?) ORDER BY part"+t.d.forUpdateSkip(), 2*ttl)
		if err != nil || len(parts) == 0 {
			return err
		}
		_, err = t.exec(t.ctx, "UPDATE partition_leases"+t.d.byPrimary()+" SET node_id = ?, boot_id = ?, term = term + 1, lease_until = ? WHERE part IN ("+idList(parts)+")",
			int64(p.Node), p.BootID, until)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (s *Partitions) ReleasePartitions(ctx context.Context, p store.ReleasePartitionsParams) (ended []domain.PartitionTerm, err error) {
	err = s.leaseTx(ctx, "release partitions", func(t *txn) error {
		ended = ended[:0]
		if p.Leaving {
			if _, err := t.exec(t.ctx, "UPDATE node_states SET renewed_at = 0 WHERE boot_id = ?", p.BootID); err != nil {
				return err
			}
		}
		if len(p.Held) == 0 {
			return nil
		}
		var parts []int64
		err := query(t.ctx, t.q, func(rows *sql.Rows) error {
			var h domain.PartitionTerm
			err := rows.Scan(&h.Partition, &h.Term)
			ended, parts = append(ended, h), append(parts, int64(h.Partition))
			return err
		}, "SELECT part, term FROM partition_leases"+t.d.byPrimary()+" WHERE ("+terms(p.Held)+") AND boot_id = ? ORDER BY part"+t.d.forUpdateSkip(), p.BootID)
		if err != nil || len(parts) == 0 {
			return err
		}
		holder := ""
		if p.Leaving {
			holder = ", node_id = 0, boot_id = ''"
		}
		_, err = t.exec(t.ctx, "UPDATE partition_leases"+t.d.byPrimary()+" SET lease_until = 0"+holder+" WHERE part IN ("+idList(parts)+")")
		return err
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// ListPlanned reads the index of the sweep: what was planned wakes PickupGrace
// after its time.
func (s *Partitions) ListPlanned(ctx context.Context, p store.ListPlannedParams) (out []domain.Execution, err error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	until := s.d.clockNow() + fmt.Sprintf(" + %d", (p.Horizon+domain.PickupGrace).Milliseconds())
	which := fmt.Sprintf("state IN (%d, %d) AND reason NOT IN ('%s', '%s')", domain.Due, domain.RetryWait, domain.ReasonWaitSlot, domain.ReasonWaitLimit)
	var list []string
	add := func(parts []int, which string) {
		for _, part := range parts {
			list = append(list, s.d.bounded(fmt.Sprintf(
				"SELECT %s FROM executions%s WHERE part = %d AND wake_at <= %s AND %s ORDER BY wake_at LIMIT %d",
				executionColumns, s.d.byIndex("ix_executions_wake"), part, until, which, p.Limit)))
		}
	}
	if len(p.OfferedBy) > 0 {
		offers := fmt.Sprintf("(state = %d OR state = %d AND idempotent = 1 AND started_at = 0) AND node_id IN (%s)",
			domain.Offered, domain.Running, idList(p.OfferedBy))
		add(p.OffersOnly, offers)
		which = fmt.Sprintf("(%s OR %s)", which, offers)
	}
	add(p.Partitions, which)
	if len(list) == 0 {
		return nil, nil
	}
	err = query(ctx, s.lookup, func(rows *sql.Rows) error {
		r := &executionRow{}
		err := rows.Scan(executionTable.targets(r)...)
		out = append(out, r.execution())
		return err
	}, strings.Join(list, " UNION ALL "))
	if err == nil && len(p.OfferedBy) > 0 {
		out, err = s.unlocked(ctx, out)
	}
	if err == nil {
		out, err = s.mayResend(ctx, out)
	}
	return out, translate("list planned executions", err)
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
	free := make(map[domain.ExecutionID]bool, len(ids))
	err := query(ctx, s.lookup, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		err := rows.Scan(&id)
		free[id] = true
		return err
	}, "SELECT id FROM executions"+s.d.byPrimary()+" WHERE id IN ("+idList(ids)+")"+s.d.forUpdateSkip())
	return slices.DeleteFunc(list, func(e domain.Execution) bool { return !free[e.ID] }), err
}

// verifyTerms is the fence of a claim. It runs last, so that the share locks
// on the lease rows, which keep others from taking over before the commit,
// are held for one round trip and a commit only: a renewal waits no longer
// than that, and a claim that is frozen half-way keeps nobody out.
func verifyTerms(t *txn, held []domain.PartitionTerm) error {
	highest := map[int]int64{}
	parts := make([]int64, len(held))
	for i, h := range held {
		parts[i] = int64(h.Partition)
	}
	err := query(t.ctx, t.q, func(rows *sql.Rows) error {
		var part int
		var term int64
		err := rows.Scan(&part, &term)
		highest[part] = term
		return err
	}, "SELECT part, term FROM partition_leases"+t.d.byPrimary()+" WHERE part IN ("+idList(parts)+") AND lease_until > "+t.d.clockNow()+t.d.forShare())
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

// leaseTx runs fn once on the connection of the leases.
func (s *DB) leaseTx(ctx context.Context, step string, fn func(*txn) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	tx, err := s.leases.BeginTx(ctx, nil)
	if err != nil {
		return translate(step, fmt.Errorf("begin: %w", err))
	}
	defer func() { _ = tx.Rollback() }() // of no effect after a commit
	if err := fn(&txn{ctx: ctx, s: s, d: s.d, q: tx, raw: tx}); err != nil {
		return translate(step, err)
	}
	if err := s.commit(tx); err != nil {
		return translate(step, commitError(err))
	}
	return nil
}
