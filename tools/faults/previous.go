package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// previousTag is the version before this one: nodes of both serve one database
// while a cluster is upgraded. A release writes its own tag here for the next
// one. Empty before the first release: then it is the commit that gave firstMigration
// the form that it has now, for until then that file changes and no other is added.
const (
	previousTag    = ""
	firstMigration = "sql/mysql/00001_schema.sql"
)

// The versions that nodes of an upgrade say they are.
const (
	oldVersion = "previous"
	newVersion = "dev"
)

// release is one version's programs.
type release struct {
	version  string
	commit   string // of previous builds
	carillon string
	witness  string // faults: its command executor uses that version's SDK
}

// previous builds the version before this one, from its own source. Where that is
// no other source (no history, as in a shallow clone or a source archive; nothing
// changed since), it is this one's once more, under another version; sameSource
// then says so.
func (s *stage) previous(ctx context.Context) (old release, sameSource bool, err error) {
	old = release{version: oldVersion, witness: s.set.self}
	flag := "-ldflags=-X main.version=" + oldVersion
	if old.commit = previousCommit(ctx, ".", previousTag); old.commit == "" {
		old.carillon = filepath.Join(s.dir, "carillon-previous")
		return old, true, lab.GoBuild(ctx, "", flag, "-o", old.carillon, "./cmd/carillon")
	}
	// Always the same folder, so that Go's cache knows what was built there.
	tree, err := filepath.Abs(filepath.Join(".cache", "previous", old.commit[:12]))
	if err != nil {
		return old, false, err
	}
	bin := filepath.Join(s.dir, "previous")
	if err := errors.Join(os.MkdirAll(tree, 0o755), os.MkdirAll(bin, 0o755)); err != nil {
		return old, false, err
	}
	if err := checkOut(ctx, old.commit, tree); err != nil {
		return old, false, err
	}
	old.carillon, old.witness = filepath.Join(bin, "carillon"), filepath.Join(bin, "faults")
	return old, false, lab.GoBuild(ctx, tree, flag, "-buildvcs=false", "-o", bin+"/", "./cmd/carillon", programOf(tree))
}

// programOf is the folder of this program in the source of a version. Versions before the
// module of tools have it among the packages of the server's module.
func programOf(tree string) string {
	if _, err := os.Stat(filepath.Join(tree, "tools", "faults")); err != nil {
		return "./internal/faults"
	}
	return "./tools/faults"
}

// previousCommit is the commit of the previous version, and "" where the working
// tree in dir has no other source than that or does not know it.
func previousCommit(ctx context.Context, dir, tag string) string {
	git := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = dir
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	found, err := git("rev-parse", "--verify", "--quiet", tag+"^{commit}")
	if tag == "" {
		found, err = git("log", "-1", "--format=%H", "--", firstMigration)
		if _, differs := git("diff", "--quiet", found, "--", firstMigration); differs != nil {
			return "" // it is being changed
		}
	}
	if err != nil || found == "" {
		return ""
	}
	if _, err := git("diff", "--quiet", found, "--", "*.go", "*.sql", "*go.mod"); err == nil {
		return "" // nothing that is compiled differs
	}
	return found
}

// checkOut writes the files of a commit into dir.
func checkOut(ctx context.Context, commit, dir string) error {
	archive := exec.CommandContext(ctx, "git", "archive", commit)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	var said strings.Builder
	archive.Stderr, unpack.Stderr = &said, &said
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := errors.Join(archive.Start(), unpack.Start()); err != nil {
		return fmt.Errorf("unpack %s: %w", commit, err)
	}
	// tar first: Wait closes the pipe that it reads.
	if err := errors.Join(unpack.Wait(), archive.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", commit, err, said.String())
	}
	return nil
}
