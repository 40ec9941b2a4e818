package deptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// List asks the go command for the packages of the module in dir and for all
// that they import, directly or not. Broken code is listed as far as it can be
// read: telling what is wrong with it is the compiler's task.
func List(ctx context.Context, dir string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-json=ImportPath,Imports,Standard", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	var packages []Package
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg Package
		err := in.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		packages = append(packages, pkg)
	}
}

// Sources returns the paths of all Go files below root.
//
// It also looks at each of them: the go command keeps a test's result until a
// file that the test looked at changes, and it does not see what the go list
// that a test starts looks at.
func Sources(root string) ([]string, error) {
	var sources []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && path != root):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go"):
			sources = append(sources, path)
			_, err = os.Stat(path)
		}
		return err
	})
	return sources, err
}
