package main

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// The lock keeps a second server out, is gone after a stop, and has one holder although many take
// and remove it at once.
func TestTheLockOfADatabase(t *testing.T) {
	c := admin.Config{DataDir: t.TempDir()}
	lock := filepath.Join(c.DataDir, "carillon.db.lock")
	release, err := lockSQLite(c)
	require.NoError(t, err)
	require.FileExists(t, lock)
	_, err = lockSQLite(c)
	require.ErrorContains(t, err, "another server works on")
	release()
	require.NoFileExists(t, lock)

	var mu sync.Mutex
	var all sync.WaitGroup
	held, taken := 0, 0
	for range 8 {
		all.Go(func() {
			for range 50 {
				release, err := lockSQLite(c)
				if err != nil {
					continue // another one has it
				}
				mu.Lock()
				held++
				taken++
				if held != 1 {
					t.Errorf("%d hold the lock", held)
				}
				mu.Unlock()
				mu.Lock()
				held--
				mu.Unlock()
				release()
			}
		})
	}
	all.Wait()
	require.Positive(t, taken)
	require.NoFileExists(t, lock)
}
