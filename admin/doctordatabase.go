package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/publish"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/schedule"
)

// databaseChecks are those that ask the database, and those of what is kept
// there. A check of a kind of cluster is one more line here.
func (e *examination) databaseChecks() []doctor.Check {
	const reach, tables = "database", "database.migrations"
	server := func(id string, look func(context.Context) []doctor.Result) doctor.Check {
		return doctor.Check{ID: id, Needs: []string{reach}, Look: e.withDatabase(look)}
	}
	rows := func(id string, look func(context.Context) []doctor.Result) doctor.Check {
		return doctor.Check{ID: id, Needs: []string{reach, tables}, Look: e.withTables(look)}
	}
	return []doctor.Check{
		{ID: reach, Look: e.reachDatabase},
		server("database.settings", e.lookAtSettings),
		server("database.group", e.lookAtGroup),
		server("database.session", e.lookAtSession),
		server("database.privileges", e.lookAtPrivileges),
		server(tables, e.lookAtMigrations),
		rows("database.keys", e.lookAtKeys),
		rows("database.connections", e.lookAtCapacity),
		server("clock", e.lookAtClock),
		rows("clock.nodes", e.lookAtNodesClocks),
		rows("cluster", e.lookAtCluster),
		rows("receivers", e.lookAtReceivers),
		rows("zones", e.lookAtZones),
		{ID: "secrets", Needs: []string{reach, tables}, Look: e.lookAtSecrets},
		rows("brokers", e.lookAtBrokers),
	}
}

// withDatabase leaves out what a database that is not made yet cannot tell.
func (e *examination) withDatabase(look func(context.Context) []doctor.Result) func(context.Context) []doctor.Result {
	return func(ctx context.Context) []doctor.Result {
		if e.store == nil {
			return []doctor.Result{doctor.Skip("there is no database yet")}
		}
		return look(ctx)
	}
}

func (e *examination) withTables(look func(context.Context) []doctor.Result) func(context.Context) []doctor.Result {
	return e.withDatabase(func(ctx context.Context) []doctor.Result {
		if !e.tables() {
			return []doctor.Result{doctor.Skip("the tables of this version are not there yet")}
		}
		return look(ctx)
	})
}

// tables reports whether the tables can be read.
func (e *examination) tables() bool {
	return e.store != nil && e.schema.Applied > 0 && e.schema.Pending == 0
}

// unasked says that the database did not answer a question.
func unasked(ctx context.Context, err error) []doctor.Result {
	return []doctor.Result{doctor.Fail("database_error", "Look at the database's own log.", "%v", plainly(ctx, err))}
}

func (e *examination) reachDatabase(ctx context.Context) []doctor.Result {
	options, err := e.Config.storeOptions()
	if err != nil {
		return unasked(ctx, err)
	}
	options.ReadOnly, options.Logger = true, slog.New(slog.DiscardHandler)
	if options.Driver == "sqlite" {
		info, err := os.Stat(options.DSN)
		if errors.Is(err, fs.ErrNotExist) {
			return []doctor.Result{doctor.Passed("SQLite: %s is not there yet, the first start makes it", options.DSN)}
		}
		if err != nil {
			return []doctor.Result{doctor.Fail("database_unreadable", "Give the server's user access to it, or another path with --database or --data.", "SQLite: %v", err)}
		}
		if info.Mode().Perm()&0o077 != 0 {
			return e.reached(ctx, options, doctor.Warn("database_readable", "Run chmod 600 "+options.DSN,
				"others can read %s (mode %04o), which holds inputs, logs and hashes of passwords", options.DSN, info.Mode().Perm()))
		}
	}
	return e.reached(ctx, options)
}

func (e *examination) reached(ctx context.Context, options gormstore.Options, warnings ...doctor.Result) []doctor.Result {
	s, err := gormstore.OpenReader(options)
	if err != nil {
		return unasked(ctx, err)
	}
	d, err := s.DescribeServer(ctx)
	if err != nil {
		err = errors.Join(err, s.Close())
		if reason := gormstore.Unreachable(err); reason != "" {
			return []doctor.Result{doctor.Fail("database_unreachable", "Look at the server, its address in --database, and what lies between; a node that starts waits for it.", "%s: %v", reason, plainly(ctx, err))}
		}
		return []doctor.Result{doctor.Fail("database_refuses", "Look at --database: host, user, password and the name of the database, which has to exist.", "%v", gormstore.Refusal(err))}
	}
	e.store = s
	if len(warnings) > 0 {
		return warnings
	}
	return []doctor.Result{doctor.Passed("%s %s, %s, %.1f ms away", d.Kind, d.Version, d.Role, float64(d.Latency.Microseconds())/1000)}
}

func (e *examination) lookAtSettings(ctx context.Context) []doctor.Result {
	d, err := e.store.DescribeServer(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	if len(d.Findings) == 0 {
		return []doctor.Result{doctor.Passed("nothing endangers a promise")}
	}
	return e.findings(d.Findings)
}

func (e *examination) lookAtGroup(ctx context.Context) []doctor.Result {
	d, err := e.store.DescribeServer(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return []doctor.Result{judgeGroup(d.Group)}
}

// judgeGroup is of a Galera cluster or a replication group.
func judgeGroup(g *domain.DatabaseGroup) doctor.Result {
	if g == nil {
		return doctor.Skip("the server is in no Galera cluster and no replication group")
	}
	answered := ""
	for _, m := range g.Members {
		if m.Current {
			answered = m.ID
		}
	}
	said := fmt.Sprintf("%s of %d servers, the one that answered is %s; %d conflicts since its start, %d transactions wait", g.Kind, len(g.Members), g.State, g.Conflicts, g.Waiting)
	switch {
	case !g.Quorum:
		return doctor.Fail("group_without_quorum", "Bring back enough servers, or let the endpoint lead to the majority (docs/guide/database-clusters.md).", "%s; it is not with the majority", said)
	case g.Writer != "" && answered != "" && g.Writer != answered:
		return doctor.Warn("endpoint_not_the_writer", "Give all nodes one endpoint that leads to one server at a time (docs/guide/database-clusters.md).",
			"%s; nodes write through another one: %s is the writer, this is %s", said, g.Writer, answered)
	}
	return doctor.Passed("%s", said)
}

// findings are what a start of the server refuses or warns of.
func (e *examination) findings(list []domain.Finding) (out []doctor.Result) {
	for _, f := range list {
		what, do := advice(f.Message)
		if e.Config.refuses(f) {
			out = append(out, doctor.Fail(f.Code, do, "%s", what))
		} else {
			out = append(out, doctor.Warn(f.Code, do, "%s", what))
		}
	}
	return out
}

// advice parts a finding's message: what is to be done stands behind its last
// semicolon or colon.
func advice(message string) (what, do string) {
	at := max(strings.LastIndex(message, "; "), strings.LastIndex(message, ": "))
	if at < 0 {
		return message, "See docs/guide/install.md, MySQL or MariaDB."
	}
	do = message[at+2:]
	return message[:at], strings.ToUpper(do[:1]) + do[1:] + "."
}

func (e *examination) lookAtSession(ctx context.Context) []doctor.Result {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no sessions")}
	}
	wrong, err := e.store.TrySession(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	var out []doctor.Result
	for _, what := range wrong {
		out = append(out, doctor.Fail("session", "Let nodes reach the server directly, or a proxy keep their sessions apart and on one server.", "a session is not what was asked for: %s", what))
	}
	if len(out) == 0 {
		out = append(out, doctor.Passed("READ COMMITTED, UTC, no limits of rows, and sessions see each other's named locks"))
	}
	return out
}

func (e *examination) lookAtPrivileges(ctx context.Context) []doctor.Result {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no users")}
	}
	lacks, err := e.store.Lacks(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	const all = "GRANT ALL PRIVILEGES ON the database TO its user (docs/guide/install.md)."
	var out []doctor.Result
	if len(lacks.Work) > 0 {
		out = append(out, doctor.Fail("privileges_missing", all, "the user may not %s", strings.Join(lacks.Work, ", ")))
	}
	if len(lacks.Migrate) > 0 {
		out = append(out, doctor.Warn("migration_privileges_missing", all+" Or run carillon migrate as another user before each new version.",
			"the user may not %s, which the first start and new versions need", strings.Join(lacks.Migrate, ", ")))
	}
	switch {
	case len(out) > 0:
		return out
	case lacks.Untried:
		return []doctor.Result{doctor.Passed("the user may read and write; changes of tables are not tried on Galera, which would stop all writers")}
	}
	return []doctor.Result{doctor.Passed("the user may read, write and change tables")}
}

func (e *examination) lookAtMigrations(ctx context.Context) []doctor.Result {
	schema, err := e.store.Schema(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	e.schema = schema
	return []doctor.Result{judgeSchema(schema)}
}

func judgeSchema(schema gormstore.Schema) doctor.Result {
	switch {
	case schema.Applied == 0:
		return doctor.Passed("the database is empty: the first start makes its tables")
	case schema.Applied > schema.Known:
		return doctor.Fail("database_of_a_newer_version", "Use that version, or put back the backup from before it.",
			"the tables are those of a newer version: %d, this one knows %d", schema.Applied, schema.Known)
	case schema.Pending > 0:
		return doctor.Warn("migrations_pending", "See them with carillon migrate --dry-run; the next start, or carillon migrate, makes them.",
			"%d migrations are to be made, from %d to %d; what the tables hold is not looked at before", schema.Pending, schema.Applied, schema.Known)
	}
	return doctor.Passed("up to date, version %d", schema.Applied)
}

func (e *examination) lookAtKeys(ctx context.Context) []doctor.Result {
	missing, err := e.store.MissingKeys(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	if len(missing) > 0 {
		return e.findings(missing)
	}
	return []doctor.Result{doctor.Passed("the unique keys against doubles are there")}
}

// lookAtCapacity counts the nodes that there are, and one that may come.
func (e *examination) lookAtCapacity(ctx context.Context) []doctor.Result {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no limit of connections")}
	}
	limits, err := e.store.Capacity(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	table, err := e.store.ReadPartitions(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return []doctor.Result{judgeCapacity(limits, len(table.Nodes))}
}

func judgeCapacity(limits gormstore.Capacity, nodes int) doctor.Result {
	most := limits.Connections
	if limits.PerUser > 0 {
		most = min(most, limits.PerUser)
	}
	const need = gormstore.ConnectionsPerNode
	nodes = max(nodes, 1)
	said := fmt.Sprintf("%d connections are allowed, %d are used; up to %d for each of the nodes (%d)", most, limits.Used, need, nodes)
	if most < (nodes+1)*need {
		return doctor.Warn("too_few_connections", fmt.Sprintf("Set max_connections (and max_user_connections) to %d or more, for these nodes and one that replaces another.", (nodes+1)*need+10), "%s", said)
	}
	return doctor.Passed("%s", said)
}

// clockWarn is how far a clock may be off before somebody should hear of it.
// Beyond scheduler.MaxJump a node's clock confirms none of the database's.
const clockWarn = scheduler.MaxJump / 2

func (e *examination) lookAtClock(ctx context.Context) []doctor.Result {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite uses this machine's clock")}
	}
	offset, bound, err := e.store.ClockOffset(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return []doctor.Result{judgeClock("the database's clock", offset, bound)}
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

func (e *examination) lookAtNodesClocks(ctx context.Context) []doctor.Result {
	table, err := e.store.ReadPartitions(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return judgeNodesClocks(table)
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

func (e *examination) lookAtCluster(ctx context.Context) []doctor.Result {
	table, err := e.store.ReadPartitions(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	values, err := e.store.ClusterValues(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return judgeCluster(table, values)
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

func (e *examination) lookAtZones(ctx context.Context) []doctor.Result {
	table, err := e.store.ReadPartitions(ctx)
	if err != nil {
		return unasked(ctx, err)
	}
	return judgeZones(domain.ZoneRules(schedule.CurrentZoneRules()), table)
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
	values, authorities, connections := map[string]string{}, []domain.Authority(nil), []domain.Connection(nil)
	if e.tables() {
		var errs [3]error
		values, errs[0] = e.store.ClusterValues(ctx)
		authorities, errs[1] = e.store.ListAuthorities(ctx)
		connections, errs[2] = e.store.ListAllConnections(ctx, maxBrokers)
		if err := errors.Join(errs[:]...); err != nil {
			return unasked(ctx, err)
		}
	}
	known := values[secret.FingerprintValue]
	box, err := secret.Read(os.Getenv(secret.EnvKey), e.Config.SealingKeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && known == "":
		return []doctor.Result{doctor.Passed("%s is not there yet, the first start makes it; nodes of one database need the same", e.Config.SealingKeyFile)}
	case errors.Is(err, fs.ErrNotExist):
		return []doctor.Result{doctor.Fail("sealing_key_missing", "Copy it from the data folder of a working node, or from the backup, with mode 600.",
			"%s is missing, and the database holds what was sealed with it", e.Config.SealingKeyFile)}
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
	for _, c := range connections {
		try("the secrets of connection "+c.Spec.Name, c.TenantID, secret.PurposeConnection, int64(c.ID), c.Secrets)
	}
	if len(broken) > 0 {
		return []doctor.Result{doctor.Fail("sealed_unreadable", "Somebody has changed these rows, or put them back from elsewhere: enter the secrets again.",
			"the key is the cluster's, and %s do not open", strings.Join(broken, ", "))}
	}
	return []doctor.Result{doctor.Passed("the sealing key is the cluster's; %d sealed values opened", opened)}
}

const (
	// maxBrokers is how many connections are looked at, and brokersAtOnce how many side by side.
	maxBrokers    = 100
	brokersAtOnce = 16
)

func (e *examination) lookAtBrokers(ctx context.Context) []doctor.Result {
	list, err := e.store.ListAllConnections(ctx, maxBrokers)
	if err != nil {
		return unasked(ctx, err)
	}
	if len(list) == 0 {
		return []doctor.Result{doctor.Skip("there are no connections to brokers")}
	}
	box, err := secret.Read(os.Getenv(secret.EnvKey), e.Config.SealingKeyFile)
	if err != nil {
		return []doctor.Result{doctor.Skip("their secrets cannot be opened")}
	}
	p := publish.New(publish.Options{Secrets: box, AllowPrefixes: e.Config.Connections.AllowPrefixes, Logger: slog.New(slog.DiscardHandler)})
	found := make([]doctor.Result, len(list))
	turn, all := semaphore.NewWeighted(brokersAtOnce), sync.WaitGroup{}
	for i, c := range list {
		all.Go(func() {
			err := turn.Acquire(ctx, 1)
			if err == nil {
				err = p.Look(ctx, c)
				turn.Release(1)
			}
			if err != nil {
				found[i] = doctor.Warn("broker_unreachable", "Look at the broker, or let the tenant correct the connection; until then its messages wait and are tried again.",
					"connection %s of tenant %s (%s, %s): %v", c.Spec.Name, c.TenantID, c.Spec.Broker, strings.Join(c.Spec.Addresses, " "), plainly(ctx, err))
			}
		})
	}
	all.Wait()
	var out []doctor.Result
	for _, r := range found {
		if r.Status != "" {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		out = append(out, doctor.Passed("all %d connections let us in; nothing was published", len(list)))
	}
	return out
}
