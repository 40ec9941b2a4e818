// Package backup answers: how does a copy of a SQLite database leave a node, and how does it
// come back?
//
// Promises:
//   - A backup appears under its name when it is whole, checked and on disk.
//   - The database that a restored one replaces is kept beside it.
//   - A restored database fires nothing until an operator accepts its history, since runs after
//     the backup are not known to it.
//
// A database on a server is copied by its own tools; Doubt tells its nodes afterwards
// (docs/guide/backup.md).
package backup

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

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// What stands beside a backup: its SHA-256, as sha256sum writes and checks it,
// and, if that was asked for, the key that opens the sealed secrets in it.
const (
	sumSuffix = ".sha256"
	keySuffix = ".sealing.key"
)

// Place is where a node has what a backup is of.
type Place struct {
	Database                string // path of the SQLite file
	DataDir, SealingKeyFile string
	// Version is written into a backup.
	Version string
	// Known is what the node has written down of the database of a cluster; zero = nothing.
	Known func(cluster string) (domain.History, error)
}

// Copy is a copy of a SQLite database in one file.
type Copy struct {
	File    string    `json:"file"`
	Bytes   int64     `json:"bytes"`
	SHA256  string    `json:"sha256"`
	At      time.Time `json:"at"` // all that was committed before is in it
	Version string    `json:"version"`
	Schema  int64     `json:"schema"` // number of its last migration
	// SealingKey is the file with the key beside it; empty = it is not there.
	SealingKey string `json:"sealingKey"`
}

// Options say where a backup goes.
type Options struct {
	File string
	// Replace writes over a file of that name.
	Replace bool
	// SealingKey puts the key that opens the secrets beside it.
	SealingKey bool
}

// Make copies the SQLite database while a node serves it, or while none does.
func Make(ctx context.Context, p Place, o Options) (b Copy, err error) {
	if _, err := os.Stat(p.Database); err != nil {
		return b, fmt.Errorf("no database: %w", err)
	}
	if err := apart(o.File, p.Database); err != nil {
		return b, err
	}
	names := []string{o.File, o.File + sumSuffix}
	if o.SealingKey {
		names = append(names, o.File+keySuffix)
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
	copied, err := gormstore.CopySQLite(ctx, p.Database, part.Name(), p.Version)
	if err != nil {
		return b, err
	}
	b = Copy{File: o.File, At: copied.At, Version: copied.Version, Schema: copied.Schema}
	if b.SHA256, b.Bytes, err = sumOf(part.Name()); err != nil {
		return b, err
	}
	if o.SealingKey {
		if b.SealingKey, err = o.putKey(p.SealingKeyFile, copied.SealingKey); err != nil {
			return b, err
		}
	}
	if err := putFile(o.File+sumSuffix, []byte(b.SHA256+"  "+filepath.Base(o.File)+"\n")); err != nil {
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
func (o Options) putKey(keyFile, fingerprint string) (string, error) {
	raw, err := secret.ReadKey(os.Getenv(secret.EnvKey), keyFile)
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
	return o.File + keySuffix, putFile(o.File+keySuffix, []byte(hex.EncodeToString(raw)+"\n"))
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
func Restore(ctx context.Context, p Place, o RestoreOptions) (out Restoration, err error) {
	if _, err := os.Stat(o.File); err != nil {
		return out, err
	}
	if err := apart(o.File, p.Database); err != nil {
		return out, err
	}
	sum, err := os.ReadFile(o.File + sumSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	out = Restoration{Database: p.Database, Held: !o.AcceptHistory, Checked: err == nil, Notes: []string{}}
	digits, _, _ := strings.Cut(strings.TrimSpace(string(sum)), " ")
	if out.Checked && len(digits) != 2*sha256.Size {
		return out, fmt.Errorf("%s holds no checksum", o.File+sumSuffix)
	}
	if err := os.MkdirAll(p.DataDir, 0o700); err != nil { // a machine that had no server yet
		return out, fmt.Errorf("data directory: %w", err)
	}
	restored, err := gormstore.RestoreSQLite(ctx, gormstore.Restoration{
		From: o.File, Path: p.Database, Sum: digits, Accept: o.AcceptHistory, Known: p.Known,
	})
	if err != nil {
		return out, err
	}
	out.Aside, out.At, out.Version = restored.Aside, restored.At, restored.Version
	if !out.Checked {
		out.note("there is no %s: only the file itself was checked", o.File+sumSuffix)
	}
	if restored.Unreadable != nil {
		out.note("the database that was there cannot be read (%v), so that nobody could see whether a server still uses it", restored.Unreadable)
	}
	if restored.Schema < restored.Known {
		out.note("its tables are of an earlier version: the server brings them up to date at its start")
	}
	return out, out.bringKey(p, o.File+keySuffix, restored.SealingKey)
}

func (r *Restoration) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// bringKey makes sure that the key of the backup is where the server looks for it,
// or says that it is not.
func (r *Restoration) bringKey(p Place, beside, fingerprint string) error {
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
	_, ok, err := fits(os.Getenv(secret.EnvKey), p.SealingKeyFile)
	if ok {
		return nil
	}
	if raw, ok, besideErr := fits("", beside); ok && errors.Is(err, fs.ErrNotExist) {
		if err := putFile(p.SealingKeyFile, []byte(hex.EncodeToString(raw)+"\n")); err != nil {
			return err
		}
		r.SealingKey = p.SealingKeyFile
		return gormstore.SameOwner(p.SealingKeyFile, p.DataDir)
	} else if besideErr != nil && !errors.Is(besideErr, fs.ErrNotExist) {
		return besideErr
	}
	what := "is another one"
	if err != nil {
		what = "is not there"
	}
	r.note("the key of its secrets (fingerprint %s) %s: put the right one at %s, or the server will not start", fingerprint, what, p.SealingKeyFile)
	return nil
}

// Doubt tells the nodes of a database into which its own tools have loaded a backup that it is
// one: nothing fires until an operator accepts it, or at once if accept is set. It returns the
// time of the backup.
func Doubt(ctx context.Context, o gormstore.Options, accept bool) (at time.Time, err error) {
	s, err := gormstore.Open(ctx, o)
	if err != nil {
		return at, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if at, err = s.DoubtBackup(ctx); err == nil && accept {
		_, err = s.AcceptHistory(ctx)
	}
	return at, err
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
	return errors.Join(secret.WriteFile(path, content, true), gormstore.SyncPath(filepath.Dir(path)))
}
