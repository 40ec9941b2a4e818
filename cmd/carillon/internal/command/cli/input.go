package cli

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/internal/document"
)

// JSONInput reads the value of --input.
func (a *App) JSONInput(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if raw, err = a.ReadInput(path); err != nil {
			return nil, err
		}
	}
	value, err := document.ReadJSON(raw)
	if err != nil {
		return nil, Usagef("--input: %w", err)
	}
	return value.MarshalJSON()
}

// Objects is Documents with the fields of each object by name.
func (a *App) Objects(path string) (out []map[string]json.RawMessage, err error) {
	objects, err := a.Documents(path)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		fields := make(map[string]json.RawMessage, len(object.Members))
		for _, m := range object.Members {
			if fields[m.Name], err = m.Value.MarshalJSON(); err != nil {
				return nil, err
			}
		}
		out = append(out, fields)
	}
	return out, nil
}

// Documents reads a file in YAML or JSON. Each of its documents has an object or a list
// of objects at its top.
func (a *App) Documents(path string) ([]*document.Value, error) {
	raw, err := a.ReadInput(path)
	if err != nil {
		return nil, err
	}
	objects, err := document.Objects(raw)
	if err != nil {
		return nil, Usagef("%s: %w", path, err)
	}
	if len(objects) == 0 {
		return nil, Usagef("%s: it is empty", path)
	}
	return objects, nil
}

// ReadInput reads a file; "-" is standard input.
func (a *App) ReadInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(a.In)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	return raw, nil
}

// ReadObject reads a file in YAML or JSON that may have these fields. Those that
// can only be read are left out: they come from get.
func (a *App) ReadObject(file, noun string, fields, readOnly []string) (map[string]json.RawMessage, error) {
	objects, err := a.Objects(file)
	if err == nil && len(objects) != 1 {
		err = Usagef("%s: has %d objects, want one", file, len(objects))
	}
	if err != nil {
		return nil, err
	}
	object := objects[0]
	for key := range object {
		if slices.Contains(readOnly, key) {
			delete(object, key)
		} else if !slices.Contains(fields, key) {
			return nil, Usagef("%s: a %s has no field %q; fields are %s", file, noun, key, strings.Join(fields, ", "))
		}
	}
	return object, nil
}
