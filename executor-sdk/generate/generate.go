package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Options of a run.
type Options struct {
	// CheckCron judges a cron expression in a dialect (empty = auto). Nil
	// checks only the number of fields.
	CheckCron func(expr, dialect string) error
}

// Output is what the files of one folder should be.
type Output struct {
	Dir     string
	Package *Package // nil: the folder has no markers, generated files must go
	Files   []File
}

// File is one generated file. Content nil means that the file must not exist.
type File struct {
	Name    string // relative to Output.Dir
	Content []byte
}

// Dir reads the package in dir and returns its generated files. Mistakes in
// the source come back as Problems.
func Dir(dir string, opts Options) (*Output, error) {
	p, err := readPackage(dir, opts)
	if err != nil {
		return nil, err
	}
	out := &Output{Dir: dir, Package: p, Files: []File{{Name: GoFile}, {Name: ManifestFile}, {Name: ProxyFile}}}
	if p == nil {
		gone, err := goneClients(dir, nil)
		out.Files = append(out.Files, gone...)
		return out, err
	}
	if out.Files[0].Content, err = renderGo(p); err != nil {
		return nil, err
	}
	if out.Files[1].Content, err = renderManifest(p); err != nil {
		return nil, err
	}
	if out.Files[2].Content, err = renderProxy(p); err != nil {
		return nil, err
	}
	for _, a := range p.away {
		code, err := renderAway(p, a)
		if err != nil {
			return nil, err
		}
		out.Files = append(out.Files, File{Name: clientFile(a.dir), Content: code})
	}
	gone, err := goneClients(dir, out.Files)
	out.Files = append(out.Files, gone...)
	return out, err
}

// Change is a file on disk that differs from what it should be.
type Change struct {
	Path    string
	Old     []byte // nil: the file is missing
	New     []byte // nil: the file must go
	Summary string // the differing lines, at most a screen full
}

// Changes compares the output with the disk.
func (o *Output) Changes() ([]Change, error) {
	var out []Change
	for _, f := range o.Files {
		path := filepath.Join(o.Dir, f.Name)
		old, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			old = nil
		} else if err != nil {
			return nil, fmt.Errorf("read generated file: %w", err)
		}
		if f.Content == nil && !isOurs(f.Name, old) {
			continue // none there, or somebody else's
		}
		if (old == nil) != (f.Content == nil) || !bytes.Equal(old, f.Content) {
			out = append(out, Change{Path: path, Old: old, New: f.Content, Summary: summarize(old, f.Content)})
		}
	}
	return out, nil
}

// isOurs reports whether content was written by this package: only then may
// it be removed.
func isOurs(name string, content []byte) bool {
	if content == nil {
		return false
	}
	return name == ManifestFile || bytes.HasPrefix(content, []byte(header))
}

// Write makes the disk agree and returns what it changed. Files are replaced
// as a whole, so that a reader never sees half of one.
func (o *Output) Write() ([]Change, error) {
	changes, err := o.Changes()
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.New == nil {
			err = os.Remove(c.Path)
		} else {
			err = replaceFile(c.Path, c.New)
		}
		if err != nil {
			return nil, fmt.Errorf("write generated file: %w", err)
		}
	}
	return changes, nil
}

func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".carillon-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// Expand resolves arguments to folders: "x/..." is x and all folders below,
// without those that the go command skips (testdata, vendor, hidden ones,
// other modules).
func Expand(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		root, all := strings.CutSuffix(filepath.ToSlash(arg), "/...")
		if !all {
			out = append(out, arg)
			continue
		}
		root = filepath.FromSlash(root)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if path != root && skipped(path, d.Name()) {
				return filepath.SkipDir
			}
			out = append(out, path)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find packages: %w", err)
		}
	}
	return out, nil
}

func skipped(path, name string) bool {
	if name == "testdata" || name == "vendor" || name == "node_modules" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}
