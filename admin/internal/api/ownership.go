package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// errOwnedByCode says where a job is declared, and what to do instead.
func errOwnedByCode(v store.JobView, instead string, changes ...Change) error {
	where := fmt.Sprintf("in the code of the executor %q, at the handler %q", v.ExecutorName, v.Spec.Handler)
	if v.Declared.Version != "" {
		where += ", version " + v.Declared.Version
	}
	err := domain.Errorf(domain.CodeOwnedByCode, "the job %q is declared %s, and belongs to it: %s", v.Spec.Name, where, instead)
	for _, c := range changes {
		err.Fields = append(err.Fields, domain.FieldError{Location: "body." + c.Field, Message: "is declared in the code", Position: -1})
	}
	return err
}

// lockedByCode refuses an edit of what the code says. Labels, alerts and the owner
// are the console's where it does not.
func lockedByCode(v store.JobView, executor domain.ExecutorID, spec *domain.JobSpec) error {
	const here = " there; labels, alerts and the owner can be changed here where the code does not declare them"
	if executor != v.Executor {
		return errOwnedByCode(v, "move it"+here, Change{Field: "executor"})
	}
	changes := changesOf(specOf(&v.Spec), specOf(spec))
	changes = slices.DeleteFunc(changes, func(c Change) bool { return !v.Spec.CodeSays.Locks(c.Field) })
	if len(changes) > 0 {
		return errOwnedByCode(v, "change it"+here, changes...)
	}
	return nil
}

// Change is one setting that differs.
type Change struct {
	Field string          `json:"field" example:"schedule.expr" doc:"Path of the setting"`
	From  json.RawMessage `json:"from" doc:"null: not set"`
	To    json.RawMessage `json:"to" doc:"null: not set"`
}

// changesOf lists the settings that differ, in the order of their names. Lists
// and inputs count as one value.
func changesOf(from, to JobSpec) []Change {
	from.Schedule.Text, to.Schedule.Text = nil, nil // follows from the others
	a, b := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	flatten(from, a)
	flatten(to, b)
	fields := map[string]bool{}
	for _, side := range []map[string]json.RawMessage{a, b} {
		for f := range side {
			fields[f] = true
		}
	}
	out := []Change{}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(a[f], b[f]) {
			out = append(out, Change{Field: f, From: rawOrNull(a[f]), To: rawOrNull(b[f])})
		}
	}
	return out
}

// flatten writes a job's settings by path, as the API names them.
func flatten(s JobSpec, into map[string]json.RawMessage) {
	raw, err := json.Marshal(s)
	if err != nil {
		return // a struct of texts and numbers always marshals
	}
	var walk func(path string, raw json.RawMessage)
	walk = func(path string, raw json.RawMessage) {
		var object map[string]json.RawMessage
		if path == "input" || len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &object) != nil {
			into[path] = raw
			return
		}
		for key, value := range object {
			if path != "" {
				key = path + "." + key
			}
			walk(key, value)
		}
	}
	walk("", raw)
}
