package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// harness tries mutants.
type harness struct {
	root  string // of the repository
	jobs  int    // at once
	limit time.Duration
	out   io.Writer
	// test runs one command, with an overlay unless that is empty; nil: goTest.
	test func(ctx context.Context, c testCommand, overlay string) ([]byte, error)
}

// result is what became of one mutant.
type result struct {
	verdict verdict
	by      string // the test that noticed it
	output  string // of the tests, where something is wrong
	took    time.Duration
}

type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	excused  verdict = "survives, as the list explains"
	wronged  verdict = "KILLED, though the list says that it survives"
	broken   verdict = "DOES NOT BUILD"
)

func (v verdict) fine() bool { return v == killed || v == excused }

// all tries mutants, says what became of each, and returns an error unless that
// is as it should be. Their tests have to pass without them first.
func (h *harness) all(ctx context.Context, mutants []mutant) error {
	if h.test == nil {
		h.test = h.goTest
	}
	if len(mutants) == 0 {
		return errors.New("no mutant has such a name")
	}
	var commands []testCommand
	for i := range mutants {
		if _, err := mutants[i].apply(h.root); err != nil {
			return err
		}
		for _, c := range mutants[i].tests {
			if !slices.Contains(commands, c) {
				commands = append(commands, c)
			}
		}
	}
	var mu sync.Mutex // guards what follows, and the output
	var sick error
	h.each(len(commands), func(i int) {
		if output, err := h.test(ctx, commands[i], ""); err != nil {
			mu.Lock()
			defer mu.Unlock()
			sick = errors.Join(sick, fmt.Errorf("without a mutant, %s: %w\n%s", commands[i], err, output))
		}
	})
	if sick != nil {
		return sick
	}
	count := map[verdict]int{}
	h.each(len(mutants), func(i int) {
		m := &mutants[i]
		r := h.try(ctx, m)
		mu.Lock()
		defer mu.Unlock()
		count[r.verdict]++
		fmt.Fprintf(h.out, "%-8s %-34s %5.1fs  %s\n", r.verdict, m.name, r.took.Seconds(), r.by)
		if !r.verdict.fine() {
			fmt.Fprintf(h.out, "  %s: %s\n  %s\n%s", m.file, m.what, m.tests[0], r.output)
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	fine := count[killed] + count[excused]
	fmt.Fprintf(h.out, "%d killed, %d explained, %d wrong\n", count[killed], count[excused], len(mutants)-fine)
	if fine < len(mutants) {
		return errors.New("not all mutants were noticed")
	}
	return nil
}

// each calls do for 0 to n-1, some at once, and returns when all have ended.
func (h *harness) each(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range h.jobs {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// try puts one mutant into the product and runs its tests.
func (h *harness) try(ctx context.Context, m *mutant) result {
	began := time.Now()
	r := h.noticed(ctx, m)
	switch {
	case m.survives != "" && r.verdict == survived:
		r.verdict = excused
	case m.survives != "" && r.verdict == killed:
		r.verdict = wronged
	}
	r.took = time.Since(began)
	return r
}

func (h *harness) noticed(ctx context.Context, m *mutant) result {
	overlay, remove, err := h.overlay(m)
	if err != nil {
		return result{verdict: broken, output: err.Error() + "\n"}
	}
	defer remove()
	for _, c := range m.tests {
		output, err := h.test(ctx, c, overlay)
		switch {
		case err == nil:
		case bytes.Contains(output, []byte("[build failed]")), bytes.Contains(output, []byte("[setup failed]")):
			return result{verdict: broken, output: string(output)}
		default:
			return result{verdict: killed, by: who(output)}
		}
	}
	return result{verdict: survived}
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// who finds the innermost test that failed first.
func who(output []byte) string {
	found := failure.FindAllSubmatch(output, -1)
	if len(found) == 0 {
		return "(the tests did not end)"
	}
	by := found[0][1]
	for _, f := range found {
		if bytes.HasPrefix(f[1], append(slices.Clone(by), '/')) {
			by = f[1]
		}
	}
	return string(by)
}

// overlay writes the changed file and the go command's description of it.
func (h *harness) overlay(m *mutant) (path string, remove func(), err error) {
	root, err := filepath.Abs(h.root)
	if err != nil {
		return "", nil, err
	}
	changed, err := m.apply(root)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file, path := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): file}})
	if err = errors.Join(err, os.WriteFile(file, changed, 0o600), os.WriteFile(path, text, 0o600)); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// goTest has the go command run a test command.
func (h *harness) goTest(ctx context.Context, c testCommand, overlay string) ([]byte, error) {
	args := []string{"test", "-tags=nomsgpack,proof", "-vet=off", "-failfast", "-timeout", h.limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if c.pattern != "" {
		args = append(args, "-run", c.pattern)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, c.pack)...)
	cmd.Dir = filepath.Join(h.root, c.module)
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=true") // a mutant's failure is nothing to be repeated
	return cmd.CombinedOutput()
}
