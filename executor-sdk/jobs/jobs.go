package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// Jobs are the jobs of one executor. It is safe for concurrent use.
type Jobs struct {
	client   *proxy.Client
	executor string
}

// New returns the jobs of an executor, by its name.
func New(client *proxy.Client, executor string) Jobs { return Jobs{client, executor} }

const (
	pageSize = 100
	// maxPage is more bytes than a page of a list has, and maxRun than a run has with its
	// output and attempts.
	maxPage, maxRun = 32 << 20, 64 << 20
)

func named(name string) string { return "/jobs/by-name/" + url.PathEscape(name) }

// ask sends a request about a job and reads the answer into out; nil: there is none.
func (j Jobs) ask(ctx context.Context, job string, a callapi.Ask, body, out any) error {
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		a.Body = raw
	}
	if reached, err := callapi.Do(ctx, j.client, a, out); err != nil {
		return j.failure(job, reached, err)
	}
	return nil
}

// Put creates the job, or gives it these settings. If it has them already, nothing changes.
// Errors are *RefusedError and *UnconfirmedError. With any other error no request was sent,
// such as for an input that is no JSON. ErrTaken: a job of another executor has the name.
func (j Jobs) Put(ctx context.Context, name string, s Spec) (*Job, error) {
	w, err := s.write(j.executor, name)
	if err != nil {
		return nil, err
	}
	var out callapi.Job
	if err := j.ask(ctx, name, callapi.Ask{Method: http.MethodPut, Path: named(name) + "?allowUnknownHandler=true"}, w, &out); err != nil {
		return nil, err
	}
	return jobOf(&out), nil
}

// Get returns a job. ErrNotFound: there is none of that name in the executor.
func (j Jobs) Get(ctx context.Context, name string) (*Job, error) {
	var out callapi.Job
	if err := j.ask(ctx, name, callapi.Ask{Method: http.MethodGet, Path: named(name)}, nil, &out); err != nil {
		return nil, err
	}
	if out.Executor.Name != j.executor { // the key is bound to several, or to none
		return nil, &RefusedError{Executor: j.executor, Job: name, Status: http.StatusNotFound, Code: "not_found", Detail: "the job belongs to another executor"}
	}
	return jobOf(&out), nil
}

// Pause stops the schedule of a job; note says why. Runs that have begun go on.
func (j Jobs) Pause(ctx context.Context, name, note string) error {
	return j.change(ctx, name, http.MethodPost, "/pause", callapi.PauseInputBody{Note: note}, &callapi.Job{})
}

// Resume starts the schedule of a job again, with the first fire time from now.
func (j Jobs) Resume(ctx context.Context, name string) error {
	return j.change(ctx, name, http.MethodPost, "/resume", nil, &callapi.Job{})
}

// Delete deletes a job; its runs stay readable. A job that does not exist is deleted already.
func (j Jobs) Delete(ctx context.Context, name string) error {
	err := j.change(ctx, name, http.MethodDelete, "", nil, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// change finds a job and asks for something about it.
func (j Jobs) change(ctx context.Context, name, method, what string, body, out any) error {
	job, err := j.Get(ctx, name)
	if err != nil {
		return err
	}
	return j.ask(ctx, name, callapi.Ask{Method: method, Path: "/jobs/" + job.ID + what}, body, out)
}

// Filter says which jobs are listed. An empty field leaves all.
type Filter struct {
	// Name is a pattern of the whole name, in which * stands for any text.
	Name string
	// Label is "key" or "key=value".
	Label string
}

// List returns the jobs of the executor by their names, as an iterator that asks for a page when
// it is needed. They have no inputs. An error is the last that it gives.
func (j Jobs) List(ctx context.Context, f Filter) iter.Seq2[*Job, error] {
	q := url.Values{"executor": {j.executor}, "limit": {strconv.Itoa(pageSize)}}
	for name, value := range map[string]string{"name": f.Name, "label": f.Label} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return func(yield func(*Job, error) bool) { list(ctx, j, "", "/jobs", q, jobOf, yield) }
}

// list hands out the items of a list, and asks for a page when it is needed.
func list[I, T any](ctx context.Context, j Jobs, job, path string, q url.Values, of func(*I) *T, yield func(*T, error) bool) {
	for {
		var page struct {
			Items      []I     `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		if err := j.ask(ctx, job, callapi.Ask{Method: http.MethodGet, Path: path + "?" + q.Encode(), Longest: maxPage}, nil, &page); err != nil {
			yield(nil, err)
			return
		}
		for i := range page.Items {
			if !yield(of(&page.Items[i]), nil) {
				return
			}
		}
		if page.NextCursor == nil {
			return
		}
		q.Set("cursor", *page.NextCursor)
	}
}
