package db

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// groupOf asks a server for its cluster; nil = it is in none.
func groupOf(ctx context.Context, q Querier, set map[string]string) (*domain.DatabaseGroup, error) {
	switch {
	case inGalera(set):
		return galeraOf(ctx, q)
	case inGroup(set):
		return groupReplicationOf(ctx, q)
	default:
		return nil, nil
	}
}

// galeraOf needs no privilege.
func galeraOf(ctx context.Context, q Querier) (*domain.DatabaseGroup, error) {
	says, err := shown(ctx, q, "STATUS", []string{
		"wsrep_cluster_status", "wsrep_ready", "wsrep_local_state_comment", "wsrep_incoming_addresses", "wsrep_local_index", "wsrep_gcomm_uuid",
		"wsrep_local_cert_failures", "wsrep_local_bf_aborts", "wsrep_local_recv_queue", "wsrep_flow_control_paused",
	})
	if err != nil {
		return nil, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(says[name], 10, 64) // 0, if it is none
		return n
	}
	g := &domain.DatabaseGroup{
		Kind: "galera", State: strings.ToLower(says["wsrep_local_state_comment"]),
		Quorum:    says["wsrep_cluster_status"] == "PRIMARY" && says["wsrep_ready"] == "ON",
		Conflicts: number("wsrep_local_cert_failures") + number("wsrep_local_bf_aborts"), Waiting: number("wsrep_local_recv_queue"), Paused: -1,
	}
	if paused, err := strconv.ParseFloat(says["wsrep_flow_control_paused"], 64); err == nil {
		g.Paused = paused
	}
	self := strings.ToLower(says["wsrep_gcomm_uuid"])
	for i, address := range strings.Split(says["wsrep_incoming_addresses"], ",") {
		m := domain.DatabaseMember{Address: strings.ToLower(address), Current: int64(i) == number("wsrep_local_index")}
		if m.Current {
			m.ID, m.State = self, g.State
		}
		g.Members = append(g.Members, m)
	}
	err = Query(ctx, q, func(rows *sql.Rows) error {
		var value string
		err := rows.Scan(&value)
		g.Writer, _ = ParseWriter(value)
		return err
	}, "SELECT value FROM cluster_values WHERE name = '"+DatabaseWriter+"'")
	var my *mysql.MySQLError
	if errors.As(err, &my) && my.Number == myNoSuchTable { // nobody has made them yet
		err = nil
	}
	for i := range g.Members {
		if m := &g.Members[i]; m.ID != "" && m.ID == g.Writer {
			m.Role = "writer"
		}
	}
	return g, err
}

// Group replication's tables may be read by who has SELECT on them.
func groupReplicationOf(ctx context.Context, q Querier) (*domain.DatabaseGroup, error) {
	g := &domain.DatabaseGroup{Kind: "group_replication", Paused: -1}
	reachable := 0
	err := Query(ctx, q, func(rows *sql.Rows) error {
		var m domain.DatabaseMember
		var host string
		var port sql.NullInt64
		var conflicts, waiting int64
		err := rows.Scan(&m.ID, &host, &port, &m.State, &m.Role, &m.Current, &conflicts, &waiting)
		m.Address, m.State, m.Role = host+":"+strconv.FormatInt(port.Int64, 10), strings.ToLower(m.State), strings.ToLower(m.Role)
		if m.Current {
			g.State, g.Conflicts, g.Waiting = m.State, conflicts, waiting
		}
		if m.Role == "primary" {
			m.Role, g.Writer = "writer", m.ID
		}
		if m.State != "unreachable" {
			reachable++
		}
		g.Members = append(g.Members, m)
		return err
	}, "SELECT m.member_id, m.member_host, m.member_port, m.member_state, m.member_role, m.member_id = @@server_uuid,"+
		" COALESCE(s.count_conflicts_detected, 0), COALESCE(s.count_transactions_remote_in_applier_queue, 0)"+
		" FROM performance_schema.replication_group_members m"+
		" LEFT JOIN performance_schema.replication_group_member_stats s ON s.member_id = m.member_id ORDER BY m.member_id")
	var my *mysql.MySQLError
	if errors.As(err, &my) && my.Number == myTableDenied {
		g.State = "unknown: the user lacks SELECT on performance_schema.replication_group_members and replication_group_member_stats"
		g.Quorum = true // or the server would not take our writes
		return g, nil
	}
	g.Quorum = g.State == "online" && 2*reachable > len(g.Members)
	return g, err
}
