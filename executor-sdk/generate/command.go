package generate

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Errors of Run besides Problems.
var (
	// ErrStale: with check, files on disk differ from what the source says.
	ErrStale = errors.New("generated files are stale; run carillon generate and commit the result")
	// ErrNoMarkers: none of the folders has a marker.
	ErrNoMarkers = errors.New("no //carillon:timer marker found; see the documentation of package generate")
)

// Run is the command: it brings the generated files of the folders (default:
// the current one) up to date, or with check only compares. What it did goes
// to out, one line per file. All folders are read before one is written, so
// that a mistake changes nothing.
func Run(args []string, check bool, opts Options, out io.Writer) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	dirs, err := Expand(args)
	if err != nil {
		return err
	}
	var outputs []*Output
	var problems Problems
	marked := false
	for _, dir := range dirs {
		o, err := Dir(dir, opts)
		var ps Problems
		if errors.As(err, &ps) {
			problems = append(problems, ps...)
			continue
		} else if err != nil {
			return err
		}
		marked = marked || o.Package != nil
		outputs = append(outputs, o)
	}
	if len(problems) > 0 {
		return problems
	}
	if err := checkDistinctFiles(outputs); err != nil {
		return err
	}
	changed := 0
	for _, o := range outputs {
		n, err := settle(o, check, out)
		if err != nil {
			return err
		}
		changed += n
	}
	switch {
	case check && changed > 0:
		return ErrStale
	case !marked && changed == 0:
		return ErrNoMarkers
	}
	return nil
}

// checkDistinctFiles says which two packages write the same file, or nil.
func checkDistinctFiles(outputs []*Output) error {
	from := map[string]string{}
	for _, o := range outputs {
		for _, f := range o.Files {
			path, err := filepath.Abs(filepath.Join(o.Dir, f.Name))
			if err != nil {
				return fmt.Errorf("find packages: %w", err)
			}
			if other := from[path]; f.Content != nil && other != "" && other != o.Dir {
				return fmt.Errorf("%s and %s both write %s: name another folder for one of them (proxy=…)", other, o.Dir, path)
			}
			if f.Content != nil {
				from[path] = o.Dir
			}
		}
	}
	return nil
}

// settle writes or compares one folder and returns the number of files that differed.
func settle(o *Output, check bool, out io.Writer) (int, error) {
	act := (*Output).Write
	if check {
		act = (*Output).Changes
	}
	changes, err := act(o)
	if err != nil {
		return 0, err
	}
	for _, c := range changes {
		verb := "wrote"
		switch {
		case check:
			verb = "stale"
		case c.New == nil:
			verb = "removed"
		}
		if _, err := fmt.Fprintf(out, "%s %s\n", verb, c.Path); err != nil {
			return 0, err
		}
		if check {
			if _, err := fmt.Fprintln(out, c.Summary); err != nil {
				return 0, err
			}
		}
	}
	return len(changes), nil
}
