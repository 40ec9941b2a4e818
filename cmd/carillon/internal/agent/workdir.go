package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// workRoot is where one agent process keeps the folders of its runs. It holds
// a lock on its folder, so that a later process can tell what nobody uses.
type workRoot struct {
	dir  string
	lock *os.File
}

const lockName = ".lock"

// openWorkRoot makes a folder below parent for this process and removes those
// of agents that have ended without doing so. Others may pass through parent
// and dir, and read neither.
func openWorkRoot(parent string) (*workRoot, error) {
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	if err := checkPrivate(parent); err != nil {
		return nil, err
	}
	removeAbandoned(parent)
	dir, err := os.MkdirTemp(parent, "agent-")
	if err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	lock, err := takeLock(dir)
	if err == nil {
		err = os.Chmod(dir, 0o711) //nolint:gosec // the user that scripts run as has to pass through
	}
	if err != nil {
		return nil, fmt.Errorf("work folder: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return &workRoot{dir: dir, lock: lock}, nil
}

// checkPrivate refuses a folder that somebody else could have prepared.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || ok && int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("work folder %s: must be a folder that only this user may write to", dir)
	}
	return nil
}

func takeLock(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// removeAbandoned removes the folders whose lock nobody holds. What cannot be
// removed is left for the next start.
func removeAbandoned(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, "agent-*"))
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, lockName)); err != nil {
			continue // another process makes it just now
		}
		if lock, err := takeLock(dir); err == nil {
			_ = removeAll(dir)
			_ = lock.Close()
		}
	}
}

// close removes everything.
func (w *workRoot) close() error {
	err := removeAll(w.dir)
	return errors.Join(err, w.lock.Close())
}

// runDir is the private folder of one run: the script's file, a folder to work
// in, and one for temporary files.
type runDir struct{ dir, script, work, temp string }

// make writes a run's folder, owned by the user that it is for.
func (w *workRoot) make(name string, content []byte, who *user) (_ *runDir, err error) {
	dir, err := os.MkdirTemp(w.dir, "run-")
	if err != nil {
		return nil, err
	}
	d := &runDir{dir: dir, script: filepath.Join(dir, name), work: filepath.Join(dir, "work"), temp: filepath.Join(dir, "tmp")}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.remove())
		}
	}()
	if err := os.WriteFile(d.script, content, 0o400); err != nil {
		return nil, err
	}
	for _, sub := range []string{d.work, d.temp} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{d.script, d.work, d.temp, d.dir} {
		if err := who.own(path); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *runDir) remove() error { return removeAll(d.dir) }

// removeAll also removes folders that nobody may write to. It runs when
// nothing of the run is left that could put links into the way.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder needs x
		}
		return nil
	})
	return os.RemoveAll(dir)
}
