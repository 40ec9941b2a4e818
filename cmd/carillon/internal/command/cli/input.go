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

// Objects reads the objects of a file by their fields.
func (a *App) Objects(path string) ([]map[string]json.RawMessage, error) {
	values, err := a.Values(path)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]json.RawMessage, len(values))
	for i, v := range values {
		if out[i], err = Fields(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Fields are the fields of an object as JSON.
func Fields(object *document.Value) (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage, len(object.Members))
	for _, m := range object.Members {
		raw, err := m.Value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		fields[m.Name] = raw
	}
	return fields, nil
}

// Values reads a file in YAML or JSON. Each of its documents has an object or a list of objects at
// its top. There is at least one object.
func (a *App) Values(path string) ([]*document.Value, error) {
	raw, err := a.ReadInput(path)
	if err != nil {
		return nil, err
	}
	values, err := document.Read(raw)
	if err != nil {
		return nil, Usagef("%s: %w", path, err)
	}
	var out []*document.Value
	for _, v := range values {
		objects := []*document.Value{v}
		switch v.Kind {
		case document.Null: // nothing between two lines of ---
			continue
		case document.List:
			objects = v.Items
		}
		for _, object := range objects {
			if object.Kind != document.Object {
				return nil, Usagef("%s: line %d: want an object with fields, such as name: VALUE", path, object.Line)
			}
			out = append(out, object)
		}
	}
	if len(out) == 0 {
		return nil, Usagef("%s: it is empty", path)
	}
	return out, nil
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
