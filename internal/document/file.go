package document

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Objects reads a text whose documents are objects, or lists of objects. An error is an *Error.
func Objects(raw []byte) (out []*Value, err error) {
	values, err := Read(raw)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		each := []*Value{v}
		switch v.Kind {
		case Null: // nothing between two lines of ---
			continue
		case List:
			each = v.Items
		}
		for _, object := range each {
			if object.Kind != Object {
				return nil, wrong(object.Line, "want an object with fields, such as name: VALUE")
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// Files are the files that a name stands for: a folder has its .yaml, .yml and .json files, in
// the order of their names. Any other name stands for itself.
func Files(name string) (out []string, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, nil // a missing file is told when it is read
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			out = append(out, filepath.Join(name, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, errors.New(name + ": it has no .yaml, .yml or .json file")
	}
	return out, nil
}

// Field is the value of a field of an object; nil: there is none.
func (v *Value) Field(name string) *Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// At is the value of a field by its path, such as spec.calendars[0].name; nil: it is not there.
func (v *Value) At(path string) *Value {
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		return v
	}
	if rest, is := strings.CutPrefix(path, "["); is && v.Kind == List {
		index, rest, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < len(v.Items) {
			return v.Items[n].At(rest)
		}
	}
	for _, m := range v.Members {
		rest, is := strings.CutPrefix(path, m.Name)
		if is && m.Name != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return m.Value.At(rest)
		}
	}
	return nil
}

// LineOf is the line of a field by its path, such as spec.calendars[0].name. A field that is not
// there has the line of the field that should have it; 0: that is v itself.
func (v *Value) LineOf(path string) int {
	path = strings.TrimPrefix(path, ".")
	if rest, is := strings.CutPrefix(path, "["); is && v.Kind == List {
		index, rest, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < len(v.Items) {
			return cmp.Or(v.Items[n].LineOf(rest), v.Items[n].Line)
		}
	}
	for _, m := range v.Members {
		rest, is := strings.CutPrefix(path, m.Name)
		if is && m.Name != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return cmp.Or(m.Value.LineOf(rest), m.Line)
		}
	}
	return 0
}
