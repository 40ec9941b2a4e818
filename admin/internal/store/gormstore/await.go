package gormstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// awaitLook is the time between two looks for a database that does not answer.
const awaitLook = time.Second

// Awaiting says how a node that starts waits for its database.
type Awaiting struct {
	// Open opens all that needs the database. After an error nothing of it is open.
	Open func(context.Context) error
	// Limit is how long an outage may last; 0 = as long as it takes, negative = not at all.
	Limit time.Duration
	// Waits is called when the reason for the wait has changed.
	Waits func(reason string)
	Log   *slog.Logger
}

// Await calls Open until the database answers. An outage that begins meanwhile starts it over.
// A fault that no waiting changes (a wrong password, an unknown database, a database that is
// refused) is an error at once.
func Await(ctx context.Context, o Awaiting) error {
	began, told := time.Now(), ""
	for {
		err := o.Open(ctx)
		if err == nil {
			if told != "" {
				o.Log.Info("the database answers, and the node starts", "waited", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}
		reason := Unreachable(err)
		if reason == "" || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if o.Limit < 0 || o.Limit > 0 && time.Since(began)+awaitLook > o.Limit {
			return fmt.Errorf("the database could not be used within %s: %s: %w", time.Since(began).Round(time.Millisecond), reason, err)
		}
		if reason != told {
			told = reason
			o.Waits(reason)
			o.Log.Warn("the node waits for its database", "reason", reason, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awaitLook):
		}
	}
}

// Refuses reports whether promises cannot be kept because of a finding.
func (o Options) Refuses(f domain.Finding) bool {
	return f.Fatal && !(f.Code == "multi_writer" && o.AllowMultiWriter)
}

func (o Options) refusal(findings []domain.Finding) error {
	var fatal []error
	for _, f := range findings {
		if o.Refuses(f) {
			fatal = append(fatal, errors.New(f.Message))
		}
	}
	if len(fatal) > 0 {
		return fmt.Errorf("refuse the database: %w", errors.Join(fatal...))
	}
	return nil
}

// Admit looks at the server before a table is made in it. A server that is refused would fail
// there with less to say.
func Admit(ctx context.Context, o Options) (err error) {
	s, err := OpenReader(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d, err := s.DescribeServer(ctx)
	if err != nil || d.ReadOnly { // then it is waited for
		return err
	}
	return o.refusal(d.Findings)
}

// AdmitTables refuses a database with which promises cannot be kept, and logs what weakens
// them.
func (s *Store) AdmitTables(ctx context.Context, o Options, log *slog.Logger) error {
	d, err := s.DescribeDatabase(ctx)
	if err != nil {
		return err
	}
	log.Info("database", "kind", d.Kind, "version", d.Version, "role", d.Role)
	for _, f := range d.Findings {
		if !o.Refuses(f) {
			log.Warn("the database endangers a promise", "finding", f.Code, "what", f.Message)
		}
	}
	return o.refusal(d.Findings)
}
