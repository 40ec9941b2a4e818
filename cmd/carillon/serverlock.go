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
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return release, nil // without its folder there is no database, which admin.New says
	}
	if err != nil {
		return release, fmt.Errorf("lock the database: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return release, fmt.Errorf("another server works on %s: SQLite is for one node; stop that one, or use MySQL or MariaDB for several (docs/guide/install.md)", path)
	}
	return release, fmt.Errorf("lock the database: %w", err)
}
