package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/carillon-sched/carillon/admin"
)

// lockSQLite keeps the SQLite file that c names for this process until it is released,
// at the latest by the process's end, and refuses one that another server works on:
// each would take half of the jobs, and wait for the other's transactions. Other
// databases are for several nodes and need no lock. Tools that only read or copy the
// file (backup, doctor, verify) take none.
func lockSQLite(c admin.Config) (release func(), err error) {
	release = func() {}
	if c.DataDir == "" {
		return release, nil // admin.New says so
	}
	file, is := strings.CutPrefix(cmp.Or(c.Database, "sqlite:"+filepath.Join(c.DataDir, "carillon.db")), "sqlite:")
	if !is {
		return release, nil
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return release, fmt.Errorf("data folder: %w", err)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(file, "file:"), "?")
	f, err := lockFile(path + ".lock")
	switch {
	case errors.Is(err, os.ErrNotExist):
		return release, nil // without its folder there is no database, which admin.New says
	case errors.Is(err, syscall.EWOULDBLOCK):
		return release, fmt.Errorf("another server works on %s: SQLite is for one node; stop that one, or use MySQL or MariaDB for several (docs/guide/install.md)", path)
	case err != nil:
		return release, fmt.Errorf("lock the database: %w", err)
	}
	return func() {
		_ = os.Remove(f.Name()) // while it is locked, so that nobody else has it
		_ = f.Close()
	}, nil
}

// lockFile makes a file and locks it, or is syscall.EWOULDBLOCK. The file that was opened may be
// removed by its last holder before it is locked: then it is made anew.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			mine, statErr := f.Stat()
			there, lookErr := os.Stat(path)
			if statErr == nil && lookErr == nil && os.SameFile(mine, there) {
				return f, nil
			}
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return nil, err
		}
	}
}
