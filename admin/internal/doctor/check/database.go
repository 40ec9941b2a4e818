package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// databaseChecks are those that ask the database, and those of what is kept
// there. A check of a kind of cluster is one more line here.
func (e *examination) databaseChecks() []doctor.Check {
	const reach, tables = "database", "database.migrations"
	server := func(id string, look rowsLook) doctor.Check {
		return doctor.Check{ID: id, Needs: []string{reach}, Look: e.withDatabase(look)}
	}
	rows := func(id string, look rowsLook) doctor.Check {
		return doctor.Check{ID: id, Needs: []string{reach, tables}, Look: e.withTables(look)}
	}
	list := []doctor.Check{
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
		rows("zones", e.lookAtZones),
		{ID: "secrets", Needs: []string{reach, tables}, Look: e.lookAtSecrets},
	}
	for _, m := range e.More {
		if m.Alone {
			continue
		}
		list = append(list, rows(m.ID, func(ctx context.Context) ([]doctor.Result, error) {
			box, err := secret.Read(os.Getenv(secret.EnvKey), e.SealingKeyFile)
			if err != nil {
				box = nil
			}
			return m.Look(ctx, e.store, box)
		}))
	}
	return list
}

// rowsLook is a check that asks the database. An error says that it did not answer.
type rowsLook = func(context.Context) ([]doctor.Result, error)

// withDatabase leaves out what a database that is not made yet cannot tell.
func (e *examination) withDatabase(look rowsLook) func(context.Context) []doctor.Result {
	return func(ctx context.Context) []doctor.Result {
		if e.store == nil {
			return []doctor.Result{doctor.Skip("there is no database yet")}
		}
		found, err := look(ctx)
		if err != nil {
			return unasked(ctx, err)
		}
		return found
	}
}

func (e *examination) withTables(look rowsLook) func(context.Context) []doctor.Result {
	return e.withDatabase(func(ctx context.Context) ([]doctor.Result, error) {
		if !e.tables() {
			return []doctor.Result{doctor.Skip("the tables of this version are not there yet")}, nil
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
	return []doctor.Result{doctor.Fail("database_error", "Look at the database's own log.", "%v", Plainly(ctx, err))}
}

func (e *examination) reachDatabase(ctx context.Context) []doctor.Result {
	options := e.Database
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
			return []doctor.Result{doctor.Fail("database_unreachable", "Look at the server, its address in --database, and what lies between; a node that starts waits for it.", "%s: %v", reason, Plainly(ctx, err))}
		}
		return []doctor.Result{doctor.Fail("database_refuses", "Look at --database: host, user, password and the name of the database, which has to exist.", "%v", gormstore.Refusal(err))}
	}
	e.store = s
	if len(warnings) > 0 {
		return warnings
	}
	return []doctor.Result{doctor.Passed("%s %s, %s, %.1f ms away", d.Kind, d.Version, d.Role, float64(d.Latency.Microseconds())/1000)}
}

func (e *examination) lookAtSettings(ctx context.Context) ([]doctor.Result, error) {
	d, err := e.store.DescribeServer(ctx)
	if len(d.Findings) == 0 {
		return []doctor.Result{doctor.Passed("nothing endangers a promise")}, err
	}
	return e.findings(d.Findings), err
}

func (e *examination) lookAtGroup(ctx context.Context) ([]doctor.Result, error) {
	d, err := e.store.DescribeServer(ctx)
	return []doctor.Result{judgeGroup(d.Group)}, err
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
		if e.Database.Refuses(f) {
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

func (e *examination) lookAtSession(ctx context.Context) (out []doctor.Result, err error) {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no sessions")}, nil
	}
	wrong, err := e.store.TrySession(ctx)
	for _, what := range wrong {
		out = append(out, doctor.Fail("session", "Let nodes reach the server directly, or a proxy keep their sessions apart and on one server.", "a session is not what was asked for: %s", what))
	}
	if len(out) == 0 {
		out = append(out, doctor.Passed("READ COMMITTED, UTC, no limits of rows, and sessions see each other's named locks"))
	}
	return out, err
}

func (e *examination) lookAtPrivileges(ctx context.Context) (out []doctor.Result, err error) {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no users")}, nil
	}
	lacks, err := e.store.Lacks(ctx)
	const all = "GRANT ALL PRIVILEGES ON the database TO its user (docs/guide/install.md)."
	if len(lacks.Work) > 0 {
		out = append(out, doctor.Fail("privileges_missing", all, "the user may not %s", strings.Join(lacks.Work, ", ")))
	}
	if len(lacks.Migrate) > 0 {
		out = append(out, doctor.Warn("migration_privileges_missing", all+" Or run carillon migrate as another user before each new version.",
			"the user may not %s, which the first start and new versions need", strings.Join(lacks.Migrate, ", ")))
	}
	switch {
	case len(out) > 0:
	case lacks.Untried:
		out = append(out, doctor.Passed("the user may read and write; changes of tables are not tried on Galera, which would stop all writers"))
	default:
		out = append(out, doctor.Passed("the user may read, write and change tables"))
	}
	return out, err
}

func (e *examination) lookAtMigrations(ctx context.Context) (_ []doctor.Result, err error) {
	e.schema, err = e.store.Schema(ctx)
	return []doctor.Result{judgeSchema(e.schema)}, err
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
			"%s to be made, from %d to %d; what the tables hold is not looked at before", spelling.Count(schema.Pending, "migration is", "migrations are"), schema.Applied, schema.Known)
	}
	return doctor.Passed("up to date, version %d", schema.Applied)
}

func (e *examination) lookAtKeys(ctx context.Context) ([]doctor.Result, error) {
	missing, err := e.store.MissingKeys(ctx)
	if len(missing) > 0 {
		return e.findings(missing), err
	}
	return []doctor.Result{doctor.Passed("the unique keys against doubles are there")}, err
}

// lookAtCapacity counts the nodes that there are, and one that may come.
func (e *examination) lookAtCapacity(ctx context.Context) ([]doctor.Result, error) {
	if e.store.Dialect.Name() == "sqlite" {
		return []doctor.Result{doctor.Skip("SQLite has no limit of connections")}, nil
	}
	limits, failed := e.store.Capacity(ctx)
	table, err := e.store.ReadPartitions(ctx)
	return []doctor.Result{judgeCapacity(limits, len(table.Nodes))}, errors.Join(failed, err)
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
