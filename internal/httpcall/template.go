package httpcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Values are what a template may name:
//
//	{{input.customer.name}}  of the run's input; numbers index arrays
//	{{run.id}}               and key, attempt, fireTime, jobName, shardIndex, shardTotal
//	{{env.TOKEN}}            of the caller's environment, as far as Env allows it
type Values struct {
	Task  executor.Task
	Input json.RawMessage
	Env   []string // names that may be used; nil: env is not there at all
}

// Expand replaces each {{name}} of a text.
func (v Values) Expand(template string) (string, error) { return expand(template, v, nil) }

// Body is what is sent of a body that is written as JSON: a text as it is,
// anything else as JSON, with what templates name. Nothing and null are no body,
// without a content type.
func (v Values) Body(raw json.RawMessage) (body []byte, contentType string, err error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, "", nil
	case raw[0] == '"':
		template, err := text(raw)
		if err != nil {
			return nil, "", err
		}
		out, err := expand(template, v, nil)
		return []byte(out), "text/plain; charset=utf-8", err
	}
	body, err = expandJSON(raw, v)
	return body, "application/json", err
}

// find returns the value of one name, as JSON.
func (v Values) find(name string) (json.RawMessage, error) {
	head, rest, _ := strings.Cut(name, ".")
	switch head {
	case "input":
		return pick(v.Input, rest, name)
	case "run":
		if value, ok := v.run()[rest]; ok {
			return json.Marshal(value)
		}
	case "env":
		if !slices.Contains(v.Env, rest) {
			return nil, fmt.Errorf("{{%s}}: no such variable is handed out here (--env of agents)", name)
		}
		return json.Marshal(os.Getenv(rest))
	}
	return nil, fmt.Errorf("{{%s}}: there is no such value; there are input.…, run.id, run.key, run.attempt, run.fireTime, run.jobName, run.shardIndex, run.shardTotal", name)
}

func (v Values) run() map[string]any {
	t := v.Task
	return map[string]any{
		"id": strconv.FormatInt(t.ExecutionID, 10), "key": t.Key(), "attempt": t.Attempt, "jobName": t.JobName,
		"fireTime": plannedAt(t), "shardIndex": t.ShardIndex, "shardTotal": max(1, t.ShardTotal),
	}
}

// pick walks down a JSON value; an empty path is all of it.
func pick(raw json.RawMessage, path, name string) (json.RawMessage, error) {
	if path == "" {
		return raw, nil
	}
	for _, step := range strings.Split(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		var found bool
		if json.Unmarshal(raw, &object) == nil {
			raw, found = object[step]
		} else if at, err := strconv.Atoi(step); err == nil && json.Unmarshal(raw, &list) == nil && at >= 0 && at < len(list) {
			raw, found = list[at], true
		}
		if !found {
			return nil, fmt.Errorf("{{%s}}: the input has no %q", name, step)
		}
	}
	return raw, nil
}

// text is a value as it stands in a text: strings without quotes.
func text(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	return string(raw), nil
}

// expand replaces each {{name}}. escape makes a value fit the place that
// begins after so much of the result; nil leaves it as it is.
func expand(template string, v Values, escape func(before, value string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		head, rest, found := strings.Cut(template, "{{")
		out.WriteString(head)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(rest, "}}")
		if !closed {
			return "", errors.New("{{ without }}")
		}
		raw, err := v.find(strings.TrimSpace(name))
		if err != nil {
			return "", err
		}
		value, err := text(raw)
		if err != nil {
			return "", err
		}
		if escape != nil {
			if value, err = escape(out.String(), value); err != nil {
				return "", err
			}
		}
		out.WriteString(value)
		template = tail
	}
}

// ExpandArgs expands each argument, which stays one argument whatever is in it.
func ExpandArgs(args []string, v Values) ([]string, error) {
	out := make([]string, len(args))
	for i, arg := range args {
		var err error
		if out[i], err = expand(arg, v, nil); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		if strings.ContainsRune(out[i], 0) {
			return nil, fmt.Errorf("argument %d: has a zero byte", i+1)
		}
	}
	return out, nil
}

// expandURL escapes Values for the path or the query that they stand in. Where
// a request goes is not theirs to say.
func expandURL(template string, v Values) (string, error) {
	if at := strings.Index(template, "{{"); at >= 0 {
		_, host, found := strings.Cut(template[:at], "://")
		if !found || !strings.Contains(host, "/") {
			return "", errors.New("url: scheme and host must be written out, templates begin in the path")
		}
	}
	return expand(template, v, func(before, value string) (string, error) {
		switch {
		case strings.ContainsRune(before, '?'):
			return url.QueryEscape(value), nil
		case value == "" || strings.Trim(value, ".") == "":
			return "", fmt.Errorf("url: %q would change the path", value)
		}
		return url.PathEscape(value), nil
	})
}

// expandJSON expands the strings in a JSON value. One that is nothing but a
// template becomes the value itself, of whatever type.
func expandJSON(raw json.RawMessage, v Values) (json.RawMessage, error) {
	// Braces that are written as \u007b are of a template, too.
	if !bytes.Contains(raw, []byte("{{")) && !bytes.Contains(raw, []byte(`\u`)) && json.Valid(raw) {
		return raw, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	tree, err := expandTree(tree, v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

func expandTree(tree any, v Values) (any, error) {
	var err error
	switch t := tree.(type) {
	case string:
		inner, isWhole := strings.CutPrefix(t, "{{")
		inner, ends := strings.CutSuffix(inner, "}}")
		if isWhole && ends && !strings.Contains(inner, "{{") {
			return v.find(strings.TrimSpace(inner))
		}
		return expand(t, v, nil)
	case []any:
		for i := range t {
			if t[i], err = expandTree(t[i], v); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range t {
			if t[key], err = expandTree(t[key], v); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}
