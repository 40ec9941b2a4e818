package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/carillon-sched/carillon/internal/lab"
)

// previousCommit is the version before this one: nodes of both serve one
// database while a cluster is upgraded. When a version is released, the one
// before it goes here. Its last migration is 00018.
const previousCommit = "f9f0cf6abf0fb6593d81b40dc34ef03fb63bc8c2"

// The versions that nodes of an upgrade say they are.
const (
	oldVersion = "previous"
	newVersion = "dev"
)

// release is one version's programs.
type release struct {
	version  string
	carillon string
	witness  string // faults: its command executor uses that version's SDK
}

// previous builds the version before this one, from its own source. Without
// the history (a shallow clone, a source archive) it is this one's source once
// more, under another version; sameSource then says so.
func (s *stage) previous(ctx context.Context) (old release, sameSource bool, err error) {
	old = release{version: oldVersion, witness: s.set.self}
	flag := "-ldflags=-X main.version=" + oldVersion
	if exec.CommandContext(ctx, "git", "cat-file", "-e", previousCommit+"^{commit}").Run() != nil {
		old.carillon = filepath.Join(s.dir, "carillon-previous")
		return old, true, lab.GoBuild(ctx, "", flag, "-o", old.carillon, "./cmd/carillon")
	}
	// Always the same folder, so that Go's cache knows what was built there.
	tree, err := filepath.Abs(filepath.Join(".cache", "previous", previousCommit[:12]))
	if err != nil {
		return old, false, err
	}
	bin := filepath.Join(s.dir, "previous")
	if err := errors.Join(os.MkdirAll(tree, 0o755), os.MkdirAll(bin, 0o755)); err != nil {
		return old, false, err
	}
	if err := checkOut(ctx, previousCommit, tree); err != nil {
		return old, false, err
	}
	old.carillon, old.witness = filepath.Join(bin, "carillon"), filepath.Join(bin, "faults")
	return old, false, lab.GoBuild(ctx, tree, flag, "-buildvcs=false", "-o", bin+"/", "./cmd/carillon", "./internal/faults")
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
