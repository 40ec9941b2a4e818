package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/clockguard"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// What stands beside a backup: its SHA-256, as sha256sum writes and checks it,
// and, if that was asked for, the key that opens the sealed secrets in it.
const (
	backupSum = ".sha256"
	backupKey = ".sealing.key"
)

// ErrNotSQLite: a database server is copied by its own tools.
var ErrNotSQLite = errors.New("the database is on a server: copy it and put it back with its own tools, " +
	"and then say so with: carillon restore --loaded (docs/guide/backup.md)")

// Backup is a copy of a SQLite database in one file.
type Backup struct {
	File    string    `json:"file"`
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256"`
	At      time.Time `json:"at"` // all that was committed before is in it
	Version string    `json:"version"`
	Schema  int64     `json:"schema"` // number of its last migration
	// SealingKey is the file with the key beside it; empty = it is not there.
	SealingKey string `json:"sealingKey"`
}

// BackupOptions say where a backup goes.
type BackupOptions struct {
	File string
	// Replace writes over a file of that name.
	Replace bool
	// SealingKey puts the key that opens the secrets beside it.
	SealingKey bool
}

// MakeBackup copies the SQLite database while a node serves it, or while none does.
// The file appears under its name when it is whole, checked and on disk.
func MakeBackup(ctx context.Context, config Config, o BackupOptions) (b Backup, err error) {
	config, path, err := config.sqliteFile()
	if err != nil {
		return b, err
	}
	if _, err := os.Stat(path); err != nil {
		return b, fmt.Errorf("no database: %w", err)
	}
	if err := apart(o.File, path); err != nil {
		return b, err
	}
	names := []string{o.File, o.File + backupSum}
	if o.SealingKey {
		names = append(names, o.File+backupKey)
	}
	for _, name := range names {
		if _, err := os.Lstat(name); err == nil && !o.Replace {
			return b, fmt.Errorf("%s: %w; name another file, or give --force", name, fs.ErrExist)
		}
	}
	folder := filepath.Dir(o.File)
	part, err := os.CreateTemp(folder, ".backup-*") // mode 0600
	if err != nil {
		return b, err
	}
	defer func() { _ = os.Remove(part.Name()) }() // it has another name by then, unless something failed
	if err := part.Close(); err != nil {
		return b, err
	}
	copied, err := gormstore.CopySQLite(ctx, path, part.Name(), config.Version)
	if err != nil {
		return b, err
	}
	b = Backup{File: o.File, At: copied.At, Version: copied.Version, Schema: copied.Schema}
	if b.SHA256, b.Bytes, err = sumOf(part.Name()); err != nil {
		return b, err
	}
	if o.SealingKey {
		if b.SealingKey, err = o.putKey(config, copied.SealingKey); err != nil {
			return b, err
		}
	}
	if err := putFile(o.File+backupSum, []byte(b.SHA256+"  "+filepath.Base(o.File)+"\n")); err != nil {
		return b, err
	}
	if err := gormstore.SyncPath(part.Name()); err != nil {
		return b, err
	}
	if !o.Replace {
		err = os.Link(part.Name(), o.File) // unlike a rename it never replaces
	} else {
		err = os.Rename(part.Name(), o.File)
	}
	return b, errors.Join(err, gormstore.SyncPath(folder))
}

// putKey copies the key that the database's secrets are sealed with.
func (o BackupOptions) putKey(config Config, fingerprint string) (string, error) {
	raw, err := secret.ReadKey(os.Getenv(secret.EnvKey), config.SealingKeyFile)
	if err != nil {
		return "", err
	}
	box, err := secret.New(raw)
	if err != nil {
		return "", err
	}
	if fingerprint != "" && box.Fingerprint() != fingerprint {
		return "", fmt.Errorf("the sealing key here (fingerprint %s) is not the one of this database (%s)", box.Fingerprint(), fingerprint)
	}
	return o.File + backupKey, putFile(o.File+backupKey, []byte(hex.EncodeToString(raw)+"\n"))
}

// RestoreOptions say what is put back, and how.
type RestoreOptions struct {
	File string
	// AcceptHistory lets the next start fire at once; otherwise nothing fires until
	// an operator has said that this database is the right one.
	AcceptHistory bool
}

// Restoration is a backup that was put back.
type Restoration struct {
	Database string    `json:"database"`
	Aside    string    `json:"aside"` // where the one is that was there; empty = there was none
	At       time.Time `json:"at"`    // of the backup
	Version  string    `json:"version"`
	// Held: nothing fires until an operator accepts.
	Held bool `json:"held"`
	// Checked: it was compared with a checksum beside it.
	Checked bool `json:"checked"`
	// SealingKey is where the key was put that lay beside the backup.
	SealingKey string `json:"sealingKey"`
	// Notes are what the operator has to know or do before the start.
	Notes []string `json:"notes"`
}

// Restore puts a backup in the place of the SQLite database, which no process may
// have open, and keeps that one beside it.
func Restore(ctx context.Context, config Config, o RestoreOptions) (out Restoration, err error) {
	if _, err := os.Stat(o.File); err != nil {
		return out, err
	}
	config, path, err := config.sqliteFile()
	if err != nil {
		return out, err
	}
	if err := apart(o.File, path); err != nil {
		return out, err
	}
	sum, err := os.ReadFile(o.File + backupSum)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	out = Restoration{Database: path, Held: !o.AcceptHistory, Checked: err == nil, Notes: []string{}}
	digits, _, _ := strings.Cut(strings.TrimSpace(string(sum)), " ")
	if out.Checked && len(digits) != 2*sha256.Size {
		return out, fmt.Errorf("%s holds no checksum", o.File+backupSum)
	}
	if err := os.MkdirAll(config.DataDir, 0o700); err != nil { // a machine that had no server yet
		return out, fmt.Errorf("data directory: %w", err)
	}
	restored, err := gormstore.RestoreSQLite(ctx, gormstore.Restoration{
		From: o.File, Path: path, Sum: digits, Accept: o.AcceptHistory,
		Known: func(cluster string) (domain.History, error) { return clockguard.KnownHistory(config.DataDir, cluster) },
	})
	if err != nil {
		return out, err
	}
	out.Aside, out.At, out.Version = restored.Aside, restored.At, restored.Version
	if !out.Checked {
		out.note("there is no %s: only the file itself was checked", o.File+backupSum)
	}
	if restored.Unreadable != nil {
		out.note("the database that was there cannot be read (%v), so that nobody could see whether a server still uses it", restored.Unreadable)
	}
	if restored.Schema < restored.Known {
		out.note("its tables are of an earlier version: the server brings them up to date at its start")
	}
	return out, out.bringKey(config, o.File+backupKey, restored.SealingKey)
}

func (r *Restoration) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// bringKey makes sure that the key of the backup is where the server looks for it,
// or says that it is not.
func (r *Restoration) bringKey(config Config, beside, fingerprint string) error {
	if fingerprint == "" {
		return nil
	}
	fits := func(key, path string) (raw []byte, ok bool, err error) {
		if raw, err = secret.ReadKey(key, path); err != nil {
			return nil, false, err
		}
		box, err := secret.New(raw)
		return raw, err == nil && box.Fingerprint() == fingerprint, err
	}
	_, ok, err := fits(os.Getenv(secret.EnvKey), config.SealingKeyFile)
	if ok {
		return nil
	}
	if raw, ok, besideErr := fits("", beside); ok && errors.Is(err, fs.ErrNotExist) {
		if err := putFile(config.SealingKeyFile, []byte(hex.EncodeToString(raw)+"\n")); err != nil {
			return err
		}
		r.SealingKey = config.SealingKeyFile
		return gormstore.SameOwner(config.SealingKeyFile, config.DataDir)
	} else if besideErr != nil && !errors.Is(besideErr, fs.ErrNotExist) {
		return besideErr
	}
	what := "is another one"
	if err != nil {
		what = "is not there"
	}
	r.note("the key of its secrets (fingerprint %s) %s: put the right one at %s, or the server will not start", fingerprint, what, config.SealingKeyFile)
	return nil
}

// DoubtRestored tells the nodes of a database into which its own tools have loaded
// a backup that it is one: nothing fires until an operator accepts it. It returns
// of when the backup is.
func DoubtRestored(ctx context.Context, config Config, accept bool) (at time.Time, err error) {
	options, err := config.storeOptions()
	if err != nil {
		return at, err
	}
	s, err := gormstore.Open(ctx, options)
	if err != nil {
		return at, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if at, err = s.DoubtBackup(ctx); err == nil && accept {
		_, err = s.AcceptHistory(ctx)
	}
	return at, err
}

// sqliteFile is the path of the database, of a configuration with all defaults.
func (c Config) sqliteFile() (Config, string, error) {
	if c.Database != "" { // before a data directory is made
		if driver, _, err := c.database(); err != nil {
			return c, "", err
		} else if driver != "sqlite" {
			return c, "", ErrNotSQLite
		}
	}
	c, err := c.withDefaults()
	if err != nil {
		return c, "", err
	}
	_, path, err := c.database()
	return c, path, err
}

// apart refuses a backup that is the database itself.
func apart(backup, database string) error {
	a, errA := os.Stat(backup)
	b, errB := os.Stat(database)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return fmt.Errorf("%s is the database itself", backup)
	}
	return nil
}

// sumOf reads a file through.
func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	hash := sha256.New()
	size, err = io.Copy(hash, f)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// putFile writes a small file that only its owner reads, durable and at once.
func putFile(path string, content []byte) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".part-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	_, err = part.Write(content)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(part.Name(), path), gormstore.SyncPath(filepath.Dir(path)))
}
