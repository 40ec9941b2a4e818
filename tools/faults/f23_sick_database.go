package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// f23 makes the database unable in four ways: its disk is full, it is
// read-only, it has no connections left, it is half a second away.
func f23(ctx context.Context, s *stage) error {
	disk, err := s.smallDisk(512 << 20)
	if err != nil {
		return err
	}
	server, err := testenv.NewServer(testenv.Options{Product: s.set.product, Dir: disk, Args: []string{"--innodb-log-file-size=32M"}})
	if err != nil {
		return err
	}
	paths, via := s.databasePaths(2, nil)
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2, server: server, database: via}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // a superuser has one connection kept for him
	pause := pick(s.set, 30*time.Second, 12*time.Second)
	trials := []struct {
		kind   string
		closed bool // nothing may start
		do     func(*cut) error
	}{
		{"disk full", false, func(*cut) error {
			if err := fillDisk(ctx, disk, pause); err != nil {
				return err
			}
			died, err := server.Revive()
			if died {
				say("the database ended by itself and is started again")
			}
			s.result.Figures["databaseDied"] = died
			return err
		}},
		{"read-only", true, func(*cut) error { return readOnly(ctx, db, pause) }},
		{"no connections left", true, func(c *cut) error { return s.noConnections(ctx, db, pause, c) }},
		{"500 ms latency", false, func(*cut) error {
			for _, p := range paths {
				p.Delay(250 * time.Millisecond)
			}
			err := wait(ctx, pause)
			for _, p := range paths {
				p.Delay(0)
			}
			return err
		}},
	}
	cuts := make([]cut, len(trials))
	for i, t := range trials {
		cuts[i].from = verify.At(time.Now())
		if err := s.fault(t.kind, "database", func() error { return t.do(&cuts[i]) }); err != nil {
			return fmt.Errorf("%s: %w", t.kind, err)
		}
		cuts[i].to = verify.At(time.Now())
		if err := wait(ctx, 8*time.Second); err != nil {
			return err
		}
		for _, a := range s.fleet.Admins {
			if err := s.revive(ctx, a); err != nil {
				return err
			}
		}
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var wrong problems
	var words []string
	for i, t := range trials {
		resumed, during := resume(j, cuts[i])
		s.result.Figures[t.kind] = map[string]any{"resumeMs": resumed, "startsDuring": during}
		words = append(words, fmt.Sprintf("%s %.0f ms", t.kind, resumed))
		if t.closed && during > 0 {
			wrong.add("kinds of faults that did not close it", "%s: %d starts", t.kind, during)
		}
	}
	s.figure("first start after heal: %s", strings.Join(words, ", "))
	return errors.Join(err, wrong.err())
}

// resume returns when the first handler started after a cut, in ms, and how
// many did in its midst.
func resume(j *judged, c cut) (ms float64, during int) {
	first := verify.Time(1 << 62)
	for _, r := range j.history.Runs {
		if r.Start >= c.to {
			first = min(first, r.Start)
		}
		// What was granted when it began has a moment to start.
		if r.Start > c.from+verify.Span(2*time.Second) && r.Start < c.to-verify.Span(500*time.Millisecond) {
			during++
		}
	}
	return float64(first-c.to) / 1000, during
}

// smallDisk mounts a file system of this size.
func (s *stage) smallDisk(size int) (string, error) {
	dir := filepath.Join(s.dir, "disk")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return "", &unableError{fmt.Sprintf("no small file system can be mounted here: %v", err)}
	}
	s.defers(func() error { return unix.Unmount(dir, 0) })
	return dir, nil
}

// fillDisk leaves no byte for a while.
func fillDisk(ctx context.Context, disk string, d time.Duration) error {
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	return errors.Join(wait(ctx, d), f.Close(), os.Remove(name))
}

func readOnly(ctx context.Context, db *sql.DB, d time.Duration) error {
	if _, err := db.ExecContext(ctx, "SET GLOBAL read_only = 1"); err != nil {
		return err
	}
	err := wait(ctx, d)
	_, off := db.ExecContext(ctx, "SET GLOBAL read_only = 0")
	return errors.Join(err, off)
}

// fewestConnections is the least that MariaDB lets max_connections be.
const fewestConnections = 10

// noConnections leaves no connection to anybody. A stranger takes as many as
// there may be before there may be no more: who is to lose his then cannot be
// quicker than the stranger. The cut begins when the admin nodes have none.
func (s *stage) noConnections(ctx context.Context, db *sql.DB, d time.Duration, c *cut) (err error) {
	dsn, err := s.db.User(ctx, "greedy", "")
	if err != nil {
		return err
	}
	greedy, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer func() {
		_, back := db.ExecContext(ctx, "SET GLOBAL max_connections = 500")
		err = errors.Join(err, greedy.Close(), back)
	}()
	for range fewestConnections + 1 { // a superuser may have one more
		if _, err := greedy.Conn(ctx); err != nil { // greedy.Close gives it back
			return err
		}
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf("SET GLOBAL max_connections = %d", fewestConnections)); err != nil {
		return err
	}
	for began := time.Now(); ; {
		ended, err := endAdminsConnections(ctx, db)
		if err != nil {
			return err
		}
		if ended == 0 {
			break
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("the admin nodes still have %d connections after a minute", ended)
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil { // one that is told to end is there for a moment
			return err
		}
	}
	c.from = verify.At(time.Now())
	return wait(ctx, d)
}

// endAdminsConnections returns how many there were.
func endAdminsConnections(ctx context.Context, db *sql.DB) (int, error) {
	ids, err := queryIDs(ctx, db, "SELECT id FROM information_schema.processlist WHERE user LIKE 'admin\\_%'")
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // it may have ended by itself
	}
	return len(ids), nil
}
