package db

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	schema "github.com/carillon-sched/carillon/sql"
)

// Restoration says how a copy takes the place of a SQLite database.
type Restoration struct {
	From, Path string
	// Sum is the SHA-256 that From has to have, in hexadecimal digits; empty = any.
	Sum string
	// Known is how far the history of the cluster with this id is known to reach.
	Known func(cluster string) (domain.History, error)
	// Accept begins the next epoch, so that nothing is held; otherwise nothing
	// starts until an operator accepts.
	Accept bool
}

// Restored is what came of it.
type Restored struct {
	Copied
	// Aside is where the database is now that was there before; empty = there was none.
	Aside string
	// Unreadable is why nobody could say whether a process uses that one; nil =
	// none does.
	Unreadable error
}

// RestoreSQLite puts a checked copy in the place of a database that nobody has
// open (CodeConflict), and keeps that one aside. At no instant is there no
// database at the path: a server that starts meanwhile waits for its lock.
func RestoreSQLite(ctx context.Context, r Restoration) (out Restored, err error) {
	old, release, err := takeFile(ctx, r.Path)
	var damaged *damagedError
	if errors.As(err, &damaged) {
		out.Unreadable, err = damaged, nil
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	folder := filepath.Dir(r.Path)
	part, err := os.CreateTemp(folder, ".restore-*") // mode 0600
	if err != nil {
		return out, err
	}
	defer os.Remove(part.Name()) // it has another name by then, unless something failed
	if err := copyChecked(part, r.From, r.Sum); err != nil {
		return out, err
	}
	known := func(cluster string) (domain.History, error) {
		h, err := r.Known(cluster)
		if cluster == old.Cluster && h.Before(old.History) {
			h = old.History
		}
		return h, err
	}
	if err := withFile(ctx, part.Name(), func(file *sql.DB) error {
		out.Copied, err = prepareRestored(ctx, file, known, r.Accept)
		return err
	}); err != nil {
		return out, err
	}
	if err := errors.Join(SameOwner(part.Name(), r.Path, folder), SyncPath(part.Name())); err != nil {
		return out, err
	}
	if out.Aside, err = keepAside(r.Path, time.Now()); err != nil {
		return out, err
	}
	return out, errors.Join(os.Rename(part.Name(), r.Path), SyncPath(folder))
}

// prepareRestored checks the copy, and makes it a database whose nodes know
// that it was put back.
func prepareRestored(ctx context.Context, file *sql.DB, known func(string) (domain.History, error), accept bool) (c Copied, err error) {
	if err := sound(ctx, file, "integrity_check"); err != nil {
		return c, err
	}
	if c, err = describeCopy(ctx, file); err != nil {
		return c, err
	}
	if c.Known, err = lastMigration(); err != nil {
		return c, err
	}
	if c.Schema > c.Known {
		return c, domain.Errorf(domain.CodeInvalid, "its tables are of migration %d, and this program knows those up to %d: restore it with the version that made it (%s) or a newer one", c.Schema, c.Known, cmp.Or(c.Version, "unknown"))
	}
	far, err := known(c.Cluster)
	if err != nil {
		return c, err
	}
	if c.History.Before(far) {
		c.History = far
	}
	tx, err := file.BeginTx(ctx, nil)
	if err != nil {
		return c, err
	}
	defer func() { _ = tx.Rollback() }() // of a committed one it does nothing
	values := map[string]string{HistoryDoubt: domain.Doubt{History: c.History, Backup: c.At}.String()}
	if accept {
		values = map[string]string{
			HistoryEpoch:                strconv.FormatInt(c.History.Epoch+1, 10),
			domain.HistoryAcceptedValue: strconv.FormatInt(time.Now().UnixMilli(), 10),
		}
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM cluster_values WHERE name IN (?, ?)", backupValue, HistoryDoubt); err != nil {
		return c, err
	}
	for name, value := range values {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO cluster_values (name, value) VALUES (?, ?)", name, value); err != nil {
			return c, err
		}
	}
	return c, tx.Commit()
}

// damagedError is of a database that cannot be read at all.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

// takeFile takes a SQLite database away from everybody else until release, and
// says what it is. Its log is in the file then. CodeConflict: a process has it
// open; a *damagedError: nothing can be said of it.
func takeFile(ctx context.Context, path string) (old Copied, release func() error, err error) {
	release = func() error { return nil }
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return old, release, err
	}
	file, err := sql.Open("sqlite", fileURI(path, url.Values{"_pragma": {"busy_timeout(500)"}}))
	if err != nil {
		return old, release, err
	}
	file.SetMaxOpenConns(1)
	var mode string
	// Whoever has a database with a log open holds a lock that refuses this. In
	// between somebody may open it, and switch the log on again.
	err = file.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	if err == nil && mode == "delete" {
		_, err = file.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err == nil && mode == "delete" {
		err = file.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	}
	switch {
	case err == nil && mode != "delete", isBusy(err):
		err = domain.Errorf(domain.CodeConflict, "a process has %s open: stop the server first", path)
	case isDamaged(err):
		err = &damagedError{err}
	case err == nil:
		// A database that is empty or not ours is put aside like any other.
		old, _ = describeCopy(ctx, file)
		return old, file.Close, nil
	}
	return old, release, errors.Join(err, file.Close())
}

func isDamaged(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && (lite.Code()&0xff == sqlitelib.SQLITE_NOTADB || lite.Code()&0xff == sqlitelib.SQLITE_CORRUPT)
}

// copyChecked copies a file and compares what it read with its sum.
func copyChecked(to *os.File, from, sum string) error {
	source, err := os.Open(from)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	defer source.Close()
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, hash), source)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	if found := hex.EncodeToString(hash.Sum(nil)); sum != "" && found != sum {
		return domain.Errorf(domain.CodeInvalid, "%s was changed or is not whole: its SHA-256 is %s, and was %s", from, found, sum)
	}
	return nil
}

// keepAside gives what is at path another name beside it, also a log that nobody
// could put into it.
func keepAside(path string, now time.Time) (aside string, err error) {
	aside = path + now.UTC().Format(".before-20060102T150405.000Z")
	if err := os.Link(path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", fmt.Errorf("keep the database that is there: %w", err)
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is made from the log
		return aside, err
	}
	for _, end := range []string{"-wal", "-journal"} {
		if err := os.Rename(path+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, nil
}

// SyncPath makes a file, or the names in a folder, durable.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lastMigration is the number of the newest migration that this program has.
func lastMigration() (last int64, err error) {
	files, err := fs.ReadDir(schema.SQLite, "sqlite")
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(files[len(files)-1].Name(), "_") // they are sorted
	return strconv.ParseInt(number, 10, 64)
}

// DoubtBackup leaves word in a database into which its own tools have loaded a
// backup: nothing starts until an operator accepts it. It returns of when the
// backup is, by the last sign of life in it.
func (s *DB) DoubtBackup(ctx context.Context) (time.Time, error) {
	return Value(ctx, s.RunRepeatable, "doubt backup", func(t *Tx) (at time.Time, err error) {
		found, doubted, err := t.History()
		if err != nil {
			return at, err
		}
		var beat int64
		if err := t.SQL.QueryRowContext(t.Ctx, "SELECT COALESCE(MAX(heartbeat_at), 0) FROM nodes").Scan(&beat); err != nil {
			return at, err
		}
		at = Instant(beat)
		if found.Before(doubted.History) {
			found = doubted.History
		}
		_, err = t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, ?)"+t.Dialect.OnDuplicate("name")+" value = "+t.Dialect.Inserted("value"),
			HistoryDoubt, domain.Doubt{History: found, Backup: at}.String())
		return at, err
	})
}
