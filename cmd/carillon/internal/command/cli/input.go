package cli

import (
	"encoding/json"
	"io"
	"maps"
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
func (a *App) Objects(path string) ([]map[string]json.RawMessage, error) {
	objects, err := a.Documents(path)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]json.RawMessage, len(objects))
	for i, object := range objects {
		if out[i], err = Fields(object); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Fields are the fields of an object by name.
func Fields(object *document.Value) (_ map[string]json.RawMessage, err error) {
	fields := make(map[string]json.RawMessage, len(object.Members))
	for _, m := range object.Members {
		if fields[m.Name], err = m.Value.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return fields, nil
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

// ReadObject reads a file in YAML or JSON with one object that may have these fields.
func (a *App) ReadObject(file, noun string, fields []string) (map[string]json.RawMessage, error) {
	objects, err := a.Documents(file)
	if err != nil {
		return nil, err
	}
	list := make([]Placed, len(objects))
	for i, object := range objects {
		list[i] = Placed{file, object}
	}
	return OneObject(list, noun, fields, nil)
}

// OneObject are the fields of the only document of a list, which may have these fields. Those
// that can only be read are left out: they come from get.
func OneObject(list []Placed, noun string, fields, readOnly []string) (map[string]json.RawMessage, error) {
	if len(list) != 1 {
		return nil, Usagef("%s: it is object 2 of %d, want one %s", list[1].At(""), len(list), noun)
	}
	for _, m := range list[0].Members {
		if !slices.Contains(fields, m.Name) && !slices.Contains(readOnly, m.Name) {
			return nil, Usagef("%s: a %s has no field %q; fields are %s", list[0].At(m.Name), noun, m.Name, strings.Join(fields, ", "))
		}
	}
	object, err := Fields(list[0].Value)
	maps.DeleteFunc(object, func(name string, _ json.RawMessage) bool { return slices.Contains(readOnly, name) })
	return object, err
}
