// Package check answers: does a node with these settings work on this machine?
//
// It has the checks that package doctor runs: settings, files, ports, certificates, the
// database and its rows, clocks, secrets, and the servers that a node sends to. It starts no
// node and writes nothing. What each check means stands in docs/guide/doctor.md.
package check

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/internal/egress"
)

// Settings are those of the node that is looked at, with all defaults.
type Settings struct {
	// Refused is why no node takes the settings; then nothing else is looked at.
	Refused error
	// Ask asks the node that has this machine's HTTP port already whether it serves. It may
	// be nil.
	Ask func(context.Context) error

	DataDir, SigningKeyFile, SealingKeyFile                        string
	HTTPAddress, ExecutorAddress, AdvertiseAddress, MetricsAddress string // the last two may be empty
	BaseURL                                                        string
	TLSCertFile, TLSKeyFile                                        string // empty: without TLS
	ExecutorTLSCertFile, ExecutorTLSKeyFile                        string
	// Files is how many files a node opens.
	Files uint64
	// Provision judges the provision file, and says what it declares; nil: there is none.
	Provision func(ctx context.Context) (summary string, err error)
	Database  gormstore.Options
	HotStore  string // empty: none
	// More are the checks of add-ons.
	More []More
}

// More is a check of an add-on. It needs the tables, unless it is Alone.
type More struct {
	ID    string
	Alone bool
	// Look gets no store if it is Alone. box is nil if the sealing key cannot be read. An
	// error says that the database did not answer.
	Look func(ctx context.Context, s *gormstore.Store, box *secret.Box) ([]doctor.Result, error)
	// Sealed lists what is sealed in the rows. nil: nothing is.
	Sealed func(ctx context.Context, s *gormstore.Store) ([]Sealed, error)
}

// Sealed is something that the sealing key opens.
type Sealed struct {
	What    string
	Tenant  domain.TenantID
	Purpose string
	ID      int64
	Bytes   []byte
}

// Run makes all checks. It returns within doctor.Limit.
func Run(ctx context.Context, s Settings) *doctor.Report {
	e := &examination{Settings: s}
	report := doctor.Run(ctx, e.checks())
	if e.store != nil {
		_ = e.store.Close() // it has only read
	}
	return report
}

// examination is one run of the doctor. A check that sets a field is needed by the checks that
// read it.
type examination struct {
	Settings

	store  *gormstore.Store // set by "database"; nil: there is no database yet
	schema gormstore.Schema // set by "database.migrations"
}

// checks are all of them, in the order of the report.
func (e *examination) checks() []doctor.Check {
	list := []doctor.Check{
		{ID: "config", Look: one(e.lookAtConfig)},
		{ID: "provision", Look: one(e.lookAtProvision)},
		{ID: "data", Look: func(context.Context) []doctor.Result { return doctor.Folder(e.DataDir, e.SigningKeyFile) }},
		{ID: "disk", Look: one(func(context.Context) doctor.Result { return doctor.Space(e.DataDir) })},
		{ID: "files", Look: one(func(context.Context) doctor.Result { return doctor.OpenFiles(e.Files) })},
		{ID: "port.http", Look: one(func(ctx context.Context) doctor.Result {
			return doctor.Port(ctx, e.HTTPAddress, e.whoHasHTTP)
		})},
		{ID: "port.executors", Look: one(func(ctx context.Context) doctor.Result {
			return doctor.Port(ctx, e.ExecutorAddress, e.whoHas(e.ExecutorAddress))
		})},
		{ID: "port.metrics", Look: one(e.lookAtMetricsPort)},
		{ID: "advertise", Look: one(e.lookAtAdvertised)},
		{ID: "certificate.http", Look: e.lookAtHTTPCertificate},
		{ID: "certificate.executors", Look: e.lookAtExecutorCertificate},
	}
	list = append(list, e.databaseChecks()...)
	for _, m := range e.More {
		if m.Alone {
			list = append(list, doctor.Check{ID: m.ID, Look: func(ctx context.Context) []doctor.Result {
				found, err := m.Look(ctx, nil, nil)
				if err != nil {
					return unasked(ctx, err)
				}
				return found
			}})
		}
	}
	list = append(list, doctor.Check{ID: "hot-store", Look: one(e.lookAtHotStore)})
	for i := range list[1:] {
		list[1+i].Needs = append([]string{"config"}, list[1+i].Needs...)
	}
	return list
}

// one is for checks that find one thing.
func one(look func(context.Context) doctor.Result) func(context.Context) []doctor.Result {
	return func(ctx context.Context) []doctor.Result { return []doctor.Result{look(ctx)} }
}

func (e *examination) lookAtConfig(context.Context) doctor.Result {
	if e.Refused != nil {
		return doctor.Fail("config_refused", "See where each setting comes from: carillon config explain", "%v", e.Refused)
	}
	return doctor.Passed("a node takes it")
}

func (e *examination) lookAtProvision(ctx context.Context) doctor.Result {
	if e.Provision == nil {
		return doctor.Skip("there is no file (--provision)")
	}
	summary, err := e.Provision(ctx)
	if err != nil {
		return doctor.Fail("provision_refused", "Correct the file, or what it names; carillon provision check tells what is wrong with it.", "%v", err)
	}
	return doctor.Passed("it declares %s", summary)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Plainly puts errors of libraries into plain words.
func Plainly(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF):
		return errors.New("the connection was closed")
	case errors.Is(err, fs.ErrPermission):
		return fs.ErrPermission
	}
	return egress.Detailed(err)
}
