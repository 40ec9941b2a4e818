package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/tools/faults/hostile"
)

const (
	requestsAtOnce = 64
	// largestAnswer is the most that an answer may have that is no stream.
	largestAnswer = 2 << 20
)

// f46 has one tenant send the largest bodies to every operation of the API and read the largest
// answers, 64 at once. What counts is the other tenant, as in f37, the node's memory, and the
// size of the answers.
func f46(ctx context.Context, s *stage) error {
	var path string
	return s.attacked(ctx, attack{
		what: "the largest requests to every operation", where: "the API",
		prepare: func(ctx context.Context, of *tenant) ([]string, error) {
			o, err := s.fatten(ctx, of)
			if err != nil {
				return nil, err
			}
			told, err := json.Marshal(o)
			if err != nil {
				return nil, err
			}
			path = filepath.Join(s.dir, "requests.json")
			return []string{"-requests", path}, os.WriteFile(path, told, 0o600)
		},
		judge: func() error { return s.judgeAnswers(path) },
	})
}

// fatten makes what a tenant stores as large as it may be, and keys of all roles.
func (s *stage) fatten(ctx context.Context, t *tenant) (o hostile.RequestOptions, err error) {
	api := t.api(0)
	o = hostile.RequestOptions{Base: api.Base, AtOnce: requestsAtOnce, Tokens: map[string]string{}, Objects: map[string]string{"/api/v1/executors": t.executorID}}
	for _, role := range []string{"caller", "timer", "viewer", "operator", "editor", "scripter", "admin"} {
		key, err := api.CreateAPIKey(ctx, apiclient.CreateAPIKeyInputBody{Name: role, Role: role})
		if err != nil {
			return o, fmt.Errorf("make a key of a %s: %w", role, err)
		}
		o.Tokens[role] = key.Value.Secret
	}
	input := map[string]any{"s": strings.Repeat("x", 250<<10)}
	body := func(n int) apiclient.JobWrite {
		made := job{name: "large", input: input, kind: "none"}.withDefaults().body(t.executorID)
		made.Description = fmt.Sprint("revision ", n)
		return made
	}
	var made, calendar struct {
		ID string `json:"id"`
	}
	if err := ask(ctx, api, http.MethodPost, "/jobs?allowUnfitInput=true", body(0), &made); err != nil {
		return o, err
	}
	o.Objects["/api/v1/jobs"] = made.ID
	days := make([]map[string]any, 900)
	for d := range days {
		date := time.Date(2026, 1, 1+d, 0, 0, 0, 0, time.UTC)
		days[d] = map[string]any{"date": date.Format(time.DateOnly), "name": strings.Repeat("n", 150)}
	}
	if err := ask(ctx, api, http.MethodPost, "/calendars", map[string]any{"name": "large", "spec": map[string]any{"holidays": days}}, &calendar); err != nil {
		return o, err
	}
	o.Objects["/api/v1/calendars"] = calendar.ID
	for n := range 12 {
		days[0]["name"] = fmt.Sprint(n)
		for _, put := range []struct {
			method, path string
			body         any
		}{
			{http.MethodPut, "/jobs/" + made.ID + "?allowUnfitInput=true", body(n + 1)},
			{http.MethodPut, "/calendars/" + calendar.ID, map[string]any{"name": "large", "spec": map[string]any{"holidays": days}}},
		} {
			if err := ask(ctx, api, put.method, put.path, put.body, nil); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// ask sends a request whose body is no type of the client.
func ask(ctx context.Context, api *lab.API, method, path string, body, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, api.Base+"/api/v1"+path, strings.NewReader(string(lab.JSON(body))))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("If-Match", "*")
	answer, err := api.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		told, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, told)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// judgeAnswers reads what the sender has written beside its options.
func (s *stage) judgeAnswers(path string) error {
	raw, err := os.ReadFile(path + ".report")
	if err != nil {
		return err
	}
	var r hostile.RequestReport
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	s.result.Figures["requests"] = r
	s.figure("%s; %d requests to %d of %d operations, %d at once; statuses %v, %d without an answer; the largest answer has %d KiB (%s)",
		s.result.Figure, r.Requests, r.Called, r.Operations, requestsAtOnce, r.Statuses, r.Broken, r.Largest>>10, r.LargestOf)
	var wrong problems
	if r.Called < r.Operations {
		wrong.add("operations without an answer", "%d of %d", r.Operations-r.Called, r.Operations)
	}
	if r.Largest > largestAnswer {
		wrong.add("answers over their bound", "%s: %d bytes", r.LargestOf, r.Largest)
	}
	for status, n := range r.Statuses {
		if status >= 500 && status != http.StatusServiceUnavailable {
			wrong.add("answers of faults of the server", "%d of %d", n, status)
		}
	}
	return wrong.err()
}

// sendRequests is the process of f46. Like attacker it leaves the processors to others.
func sendRequests(ctx context.Context, path string) error {
	var o hostile.RequestOptions
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		return err
	}
	report, err := hostile.Requests(ctx, o)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(report); err != nil {
		return err
	}
	return os.WriteFile(path+".report", raw, 0o600)
}
