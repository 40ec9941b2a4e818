package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
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
	if !json.Valid(raw) {
		var v any
		return nil, Usagef("--input is no JSON: %w", json.Unmarshal(raw, &v))
	}
	return raw, nil
}

// yamlToJSON reads one YAML document (JSON is YAML) with an object at its top.
func yamlToJSON(raw []byte) (map[string]json.RawMessage, error) {
	objects, err := YAMLObjects(raw)
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("read YAML: %d objects, want one", len(objects))
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

// YAMLObjects reads all documents, each of which has an object or a list of
// objects at its top.
func YAMLObjects(raw []byte) ([]map[string]json.RawMessage, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var out []map[string]json.RawMessage
	for {
		var value yaml.Node
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		objects := make([]map[string]any, 1)
		var err error
		if len(value.Content) == 1 && value.Content[0].Kind == yaml.SequenceNode {
			err = value.Decode(&objects)
		} else {
			err = value.Decode(&objects[0])
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		for _, object := range objects {
			fields, err := fieldsToJSON(object)
			if err != nil {
				return nil, err
			}
			out = append(out, fields)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("read YAML: it is empty")
	}
	return out, nil
}

func fieldsToJSON(value map[string]any) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage, len(value))
	for key, v := range value {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", key, err)
		}
		out[key] = text
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
	raw, err := a.ReadInput(file)
	if err != nil {
		return nil, err
	}
	object, err := yamlToJSON(raw)
	if err != nil {
		return nil, Usagef("%s: %w", file, err)
	}
	for key := range object {
		if slices.Contains(readOnly, key) {
			delete(object, key)
		} else if !slices.Contains(fields, key) {
			return nil, Usagef("%s: a %s has no field %q; fields are %s", file, noun, key, strings.Join(fields, ", "))
		}
	}
	return object, nil
}
