package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
)

// seedExecutors is how many executors the seeded jobs have.
const seedExecutors = 12

// seed fills a tenant with jobs and their runs of 30 days, so that a person can look at the pages
// of a large tenant. The database is one that a server has made, and no server may use it
// meanwhile.
func seed(ctx context.Context, args []string, talk io.Writer) (err error) {
	f := pflag.NewFlagSet("bench seed", pflag.ContinueOnError)
	f.SetOutput(talk)
	database := f.String("database", "", "what the server's --database says: sqlite:PATH or mysql:DSN")
	tenant := f.String("tenant", "default", "tenant that gets the jobs")
	jobs := f.Int("jobs", 10_000, "how many; 10,000 have a million runs")
	if err := f.Parse(args); err != nil {
		return err
	}
	kind, dsn, ok := strings.Cut(*database, ":")
	if !ok || kind != SQLite && kind != MySQL {
		return fmt.Errorf("--database %q: give sqlite:PATH or mysql:DSN", *database)
	}
	if *jobs < 1 {
		return fmt.Errorf("--jobs %d: give at least 1", *jobs)
	}
	ids := domain.NewIDSource(loaderNode, time.Now)
	s, err := gormstore.Open(ctx, gormstore.Options{Driver: kind, DSN: dsn, NewID: ids.Next, Logger: slog.New(slog.NewTextHandler(talk, nil))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	to, err := s.FindTenantByName(ctx, *tenant)
	if err != nil {
		return err
	}
	p := benchdata.Seed{Tenant: to.ID, Jobs: *jobs, Until: time.Now(), NewID: ids.Next}
	for n := range seedExecutors {
		e := domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: to.ID, Name: fmt.Sprintf("seeded-%02d", n)}
		if err := s.CreateExecutor(ctx, e); err != nil {
			return err
		}
		p.Executors = append(p.Executors, e.ID)
	}
	began := time.Now()
	if _, err := benchdata.Plant(ctx, s.DB, p); err != nil {
		return err
	}
	fmt.Fprintf(talk, "%d jobs and their runs in %s. Now their ends are counted.\n", *jobs, time.Since(began).Round(time.Second))
	for more := true; more; {
		if more, err = s.CountEnds(ctx, 0); domain.Is(err, domain.CodeUnavailable) {
			more, err = true, ctx.Err() // it took too long, and the next part is smaller
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(talk, "all of it in %s\n", time.Since(began).Round(time.Second))
	return nil
}
