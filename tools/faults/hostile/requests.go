package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bodySize is that of the bodies, in bytes: the most that an operation takes.
const bodySize = 1<<20 - 64

// RequestOptions name the node and the account of the requests.
type RequestOptions struct {
	Base   string            // http://host:port
	Tokens map[string]string // API keys by role
	// Objects are ids by the beginning of the path, such as /api/v1/jobs.
	Objects map[string]string
	// AtOnce is how many requests are under way.
	AtOnce int
}

// RequestReport is what came of requests.
type RequestReport struct {
	Operations int // of the document
	Called     int // of them, at least once
	Requests   int64
	Statuses   map[int]int64
	Broken     int64 // requests without an answer
	// Largest is the most that an answer has that is no stream, in bytes, and LargestOf its
	// operation.
	Largest   int64
	LargestOf string
}

// operation is one of the document.
type operation struct {
	name, method, path, role string
	parameters               string
	body, streams            bool
}

// weakest are the roles that may call operations of a policy. Others are called by a viewer, and
// refuse.
var weakest = map[string]string{
	"public": "", "authenticated": "caller", "permission:call": "caller", "permission:timer": "timer", "permission:read": "viewer",
	"permission:operate": "operator", "permission:edit": "editor", "permission:script": "scripter", "permission:admin": "admin",
}

// Requests sends large requests to all operations of the document, many at once, and reads
// their answers, until ctx ends. Each operation is called by the weakest role that may.
func Requests(ctx context.Context, o RequestOptions) (RequestReport, error) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: o.AtOnce}}
	operations, err := readOperations(ctx, client, o.Base)
	if err != nil {
		return RequestReport{}, err
	}
	bodies := largeBodies()
	report := RequestReport{Operations: len(operations), Statuses: map[int]int64{}}
	called := map[string]bool{}
	var mu sync.Mutex // guards report and called
	var turn atomic.Int64
	var all sync.WaitGroup
	for range o.AtOnce {
		all.Go(func() {
			for ctx.Err() == nil {
				n := int(turn.Add(1) - 1)
				op := operations[n%len(operations)]
				body := ""
				if op.body {
					body = bodies[n/len(operations)%len(bodies)]
				}
				status, size, err := op.send(ctx, client, o, body)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				report.Requests++
				if err != nil {
					report.Broken++
				} else {
					called[op.name] = true
					report.Statuses[status]++
				}
				if !op.streams && size > report.Largest {
					report.Largest, report.LargestOf = size, op.name
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	report.Called = len(called)
	return report, nil
}

func (op operation) send(ctx context.Context, client *http.Client, o RequestOptions, body string) (status int, size int64, err error) {
	request, err := http.NewRequestWithContext(ctx, op.method, o.Base+op.fill(o.Objects)+op.parameters, strings.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	if token := o.Tokens[op.role]; token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if op.body {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("If-Match", "*")
	answer, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	size, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, size, err
}

var inPath = regexp.MustCompile(`\{[^}]*\}`)

// fill names an object of the tenant if the operation reads it or takes a body, which is no
// legal one. What would change or delete an object without a body gets a wrong id.
func (op operation) fill(objects map[string]string) string {
	before, _, _ := strings.Cut(op.path, "/{")
	id := objects[before]
	if id == "" || op.method != http.MethodGet && !op.body {
		id = "1"
	}
	return inPath.ReplaceAllString(op.path, id)
}

func readOperations(ctx context.Context, client *http.Client, base string) (out []operation, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/openapi.json", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&document); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, raw := range document.Paths[path] {
			var o struct {
				ID         string          `json:"operationId"`
				Policy     string          `json:"x-policy"`
				Body       json.RawMessage `json:"requestBody"`
				Parameters []struct {
					Name   string `json:"name"`
					Schema struct {
						Maximum float64 `json:"maximum"`
					} `json:"schema"`
				} `json:"parameters"`
				Responses map[string]struct {
					Content map[string]json.RawMessage `json:"content"`
				} `json:"responses"`
			}
			if json.Unmarshal(raw, &o) != nil || o.ID == "" {
				continue // not an operation
			}
			role, known := weakest[o.Policy]
			if !known {
				role = "viewer"
			}
			op := operation{name: o.ID, method: strings.ToUpper(method), path: path, role: role, body: o.Body != nil}
			for media := range o.Responses["200"].Content {
				op.streams = op.streams || !strings.Contains(media, "json")
			}
			for _, p := range o.Parameters {
				if p.Name == "limit" {
					op.parameters = fmt.Sprintf("?limit=%.0f", p.Schema.Maximum)
				}
			}
			out = append(out, op)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the document of %s has no operations", base)
	}
	return out, nil
}

// largeBodies are as large as operations take, and no legal ones. A wrong reader pays dearly for
// them (admin/internal/api/hostilebody_test.go).
func largeBodies() []string {
	fit := func(before, part, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(part, (bodySize-len(before)-len(after))/len(part)), ",") + after
	}
	members := strings.Builder{}
	for i := 0; members.Len() < bodySize-20; i++ {
		fmt.Fprintf(&members, `,"m%d":0`, i)
	}
	return []string{
		"{" + members.String()[1:] + "}",
		fit("[", "{},", "]"),
		fit("{", `"name":0,`, "}"),
		strings.Repeat("[", bodySize/2) + strings.Repeat("]", bodySize/2),
		fit(`{"name":"`, "x", `"}`),
		fit(`{"name":"`, "\xbc\xe0", `"}`),
		fit(`{"input":[`, "{},", "{}]}"),
		fit(`{"items":[`, "{},", "{}]}"),
	}
}
