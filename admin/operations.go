package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/backup"
	"github.com/carillon-sched/carillon/admin/internal/clockguard"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/doctor/check"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
	"github.com/carillon-sched/carillon/admin/internal/profile"
	"github.com/carillon-sched/carillon/admin/internal/provision"
	"github.com/carillon-sched/carillon/admin/internal/sample"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/tenantmove"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/admin/verify/ledger"
)

// Diagnosis is what Diagnose found.
type Diagnosis = doctor.Report

// Verdicts of the lines of a Diagnosis.
const (
	DiagnosisOK      = doctor.OK
	DiagnosisWarning = doctor.Warning
	DiagnosisFailed  = doctor.Failed
	DiagnosisSkipped = doctor.Skipped
)

// Diagnosing says what to look at.
type Diagnosing struct {
	Config Config
	// ConfigErr is why there is no Config; then little else can be looked at.
	ConfigErr error
	// Ask asks the node that has this machine's HTTP port already whether it serves.
	Ask func(context.Context) error
}

// Diagnose looks whether a node with this configuration works on this machine,
// without starting one. It writes nothing, and returns within 5 s.
func Diagnose(ctx context.Context, o Diagnosing) *Diagnosis {
	s := check.Settings{Refused: o.ConfigErr}
	if o.ConfigErr == nil {
		s = o.Config.toCheck()
	}
	s.Ask = o.Ask
	return check.Run(ctx, s)
}

// otherFiles are open besides connections: the database, logs and so on.
const otherFiles = 200

// toCheck returns the settings that the doctor looks at.
func (c Config) toCheck() check.Settings {
	c, err := c.withDefaults()
	s := check.Settings{
		DataDir: c.DataDir, SigningKeyFile: auth.SigningKeyFile, SealingKeyFile: c.SealingKeyFile,
		HTTPAddress: c.HTTPAddress, ExecutorAddress: c.ExecutorAddress, AdvertiseAddress: c.AdvertiseAddress, MetricsAddress: c.MetricsAddress,
		BaseURL: c.BaseURL, TLSCertFile: c.TLSCertFile, TLSKeyFile: c.TLSKeyFile, ExecutorTLSCertFile: c.ExecutorTLSCertFile, ExecutorTLSKeyFile: c.ExecutorTLSKeyFile,
		Files: uint64(cmp.Or(c.HTTPLimits.Connections, httpconn.DefaultMax) + cmp.Or(c.ExecutorLimits.Sessions, gateway.DefaultSessions) + otherFiles),
		More:  addOnChecks(c.AddOns, c.Webhook.AllowPrefixes), HotStore: c.HotStore,
	}
	if c.ProvisionFile != "" {
		s.Provision = func(ctx context.Context) (string, error) { return CheckProvision(ctx, c.ProvisionFile, "") }
	}
	if err == nil {
		s.Database, err = c.storeOptions()
	}
	s.Refused = err
	return s
}

// PendingSQL returns the statements that Migrate would run, and "" when there
// are none. It changes nothing.
func PendingSQL(ctx context.Context, config Config) (string, error) {
	options, err := config.storeOptions()
	if err == nil {
		err = config.makeDataDir()
	}
	if err != nil {
		return "", err
	}
	return gormstore.PendingSQL(ctx, options)
}

// Migrate brings the tables up to date, as New does.
func Migrate(ctx context.Context, config Config) error {
	options, err := config.storeOptions()
	if err == nil {
		err = config.makeDataDir()
	}
	if err != nil {
		return err
	}
	return gormstore.Migrate(ctx, options)
}

// Account judges what the database says of the fire times since then
// (docs/guide/verify.md). It only reads, and needs no running node; the tables have
// to be those of this version.
func Account(ctx context.Context, config Config, since time.Duration) (report *verify.Report, err error) {
	options, err := config.storeOptions()
	if err == nil {
		config, err = config.withDefaults()
	}
	if err != nil {
		return nil, err
	}
	if options.Driver == "sqlite" {
		if _, err := os.Stat(options.DSN); err != nil {
			return nil, fmt.Errorf("no database: %w", err)
		}
	}
	if since > config.RunRetention {
		return nil, fmt.Errorf("since: rows are kept for %s only", config.RunRetention)
	}
	options.Logger, options.ReadOnly = slog.New(slog.DiscardHandler), true // nothing is repeated
	pending, err := gormstore.PendingSQL(ctx, options)
	if err != nil {
		return nil, err
	}
	if pending != "" {
		return nil, errors.New("the tables are not those of this version: start a node of it, or run carillon migrate")
	}
	s, err := gormstore.OpenReader(options)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return ledger.Check(ctx, s, ledger.Options{Since: since})
}

// What MakeBackup and Restore take and say.
type (
	Backup         = backup.Copy
	BackupOptions  = backup.Options
	RestoreOptions = backup.RestoreOptions
	Restoration    = backup.Restoration
)

// MakeBackup copies the SQLite database while a node serves it, or while none does.
func MakeBackup(ctx context.Context, config Config, o BackupOptions) (b Backup, err error) {
	place, err := config.place()
	if err != nil {
		return b, err
	}
	return backup.Make(ctx, place, o)
}

// Restore puts a backup in the place of the SQLite database, which no process may
// have open, and keeps that one beside it.
func Restore(ctx context.Context, config Config, o RestoreOptions) (out Restoration, err error) {
	place, err := config.place()
	if err != nil {
		return out, err
	}
	return backup.Restore(ctx, place, o)
}

// DoubtRestored tells the nodes of a database into which its own tools have loaded
// a backup that it is one: nothing fires until an operator accepts it. It returns
// of when the backup is.
func DoubtRestored(ctx context.Context, config Config, accept bool) (at time.Time, err error) {
	options, err := config.storeOptions()
	if err != nil {
		return at, err
	}
	return backup.Doubt(ctx, options, accept)
}

// place is where the SQLite database is, and what belongs to it.
func (c Config) place() (p backup.Place, err error) {
	if c.Database != "" { // before a data directory is made
		if driver, _, err := c.database(); err != nil {
			return p, err
		} else if driver != "sqlite" {
			return p, errors.New("the database is on a server: copy it and put it back with its own tools, " +
				"and then say so with: carillon restore --loaded (docs/guide/backup.md)")
		}
	}
	if c, err = c.withDefaults(); err != nil {
		return p, err
	}
	_, path, err := c.database()
	return backup.Place{
		Database: path, DataDir: c.DataDir, SealingKeyFile: c.SealingKeyFile, Version: c.Version,
		Known: func(cluster string) (domain.History, error) { return clockguard.KnownHistory(c.DataDir, cluster) },
	}, err
}

// ServeProfiles serves net/http/pprof of this process at a loopback address until ctx ends.
func ServeProfiles(ctx context.Context, address string) error { return profile.Serve(ctx, address) }

// What a move of a tenant to another cell takes and says.
type (
	TenantMove        = tenantmove.Report
	MoveTenantOptions = tenantmove.Order
)

// MoveTenant moves a tenant from the database of one cell to that of another one, while
// both serve (docs/adr/0088). The same call goes on with a move that has ended anywhere.
func MoveTenant(ctx context.Context, from, to Config, o MoveTenantOptions) (TenantMove, error) {
	source, err := from.storeOptions()
	if err != nil {
		return TenantMove{}, fmt.Errorf("the source: %w", err)
	}
	target, err := to.storeOptions()
	if err != nil {
		return TenantMove{}, fmt.Errorf("the target: %w", err)
	}
	return tenantmove.Between(ctx, source, target, o)
}

// NewSecret makes a random secret of a kind of SecretKinds.
func NewSecret(kind string) (string, error) { return auth.NewSecret(kind) }

// SecretKinds are what NewSecret makes.
func SecretKinds() []string { return auth.SecretKinds() }

// Access is what an application needs to take part.
type Access = provision.Access

// Provision makes executors in the first tenant, unless they exist. It gives access to the first
// one, and join tokens to the others. It is for the owner of the process, such as the demo.
func (a *Admin) Provision(ctx context.Context, executor string, others ...string) (Access, error) {
	return provision.GiveAccess(ctx, a.store, a.auth, a.ids.Next, executor, others...)
}

// sampleLook is how often ImportSampleWeek looks for the jobs of the shop.
const sampleLook = 200 * time.Millisecond

// ImportSampleWeek imports the runs that the sample shop would have left in the week before an
// instant (docs/adr/0109). It waits for the shop's jobs until they are there or ctx ends. The
// same call imports nothing twice. It returns how many runs were new.
func (a *Admin) ImportSampleWeek(ctx context.Context, until time.Time) (imported int, err error) {
	tenant, err := a.store.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return 0, err
	}
	jobs, err := a.sampleJobs(ctx, tenant.ID)
	if err != nil {
		return 0, err
	}
	week := sample.Week(jobs, until)
	for runs := range slices.Chunk(week.Runs, store.MaxImport) {
		n, err := a.store.ImportRuns(ctx, store.ImportRunsParams{Tenant: tenant.ID, Instances: week.Instances, Runs: runs})
		if imported += n; err != nil {
			return imported, fmt.Errorf("import the sample week: %w", err)
		}
		week.Instances = nil // they came with the first part
	}
	return imported, nil
}

// sampleJobs waits for the jobs that the shop declares when it registers.
func (a *Admin) sampleJobs(ctx context.Context, tenant domain.TenantID) ([]store.JobView, error) {
	names := sample.Jobs()
	look := time.NewTicker(sampleLook)
	defer look.Stop()
	for {
		found, err := a.store.FindJobsByName(ctx, tenant, names)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if len(found) == len(names) {
			jobs := make([]store.JobView, len(names))
			for i, name := range names {
				jobs[i] = *found[name]
			}
			return jobs, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the jobs of the sample shop: %d of %d are there: %w", len(found), len(names), context.Cause(ctx))
		}
	}
}
