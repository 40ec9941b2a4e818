// Roundtrip uses a server by the client that oapi-codegen makes of
// docs/openapi.json: ../../clients.sh generates it beside this file and runs both.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"roundtrip/carillon"
)

var passed, failed int

func check(ok bool, what string, args ...any) {
	if ok {
		passed++
		return
	}
	failed++
	fmt.Printf("FAIL "+what+"\n", args...)
}

// must ends the program: what follows would only fail for the same reason.
func must[T any](v T, err error) T {
	if err != nil {
		failed++
		fmt.Println("FAIL", err)
		finish()
	}
	return v
}

func finish() {
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

func ptr[T any](v T) *T { return &v }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := os.Getenv("CARILLON_URL")
	anonymous := must(carillon.NewClientWithResponses(url))

	wrong := must(anonymous.LoginWithResponse(ctx, carillon.LoginInputBody{Username: "admin", Password: "not this one"}))
	check(wrong.JSON200 == nil && wrong.ApplicationproblemJSON401 != nil && wrong.ApplicationproblemJSON401.Code == carillon.ProblemCodeUnauthenticated,
		"a wrong password is a typed problem: %s", wrong.Body)
	login := must(anonymous.LoginWithResponse(ctx, carillon.LoginInputBody{Username: "admin", Password: os.Getenv("CARILLON_PASSWORD")}))
	if login.JSON200 == nil {
		must(0, fmt.Errorf("login: %s", login.Body))
	}
	c := must(carillon.NewClientWithResponses(url, carillon.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+login.JSON200.AccessToken)
		return nil
	})))

	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	made := must(c.CreateExecutorWithResponse(ctx, carillon.CreateExecutorInputBody{Name: name}))
	check(made.JSON201 != nil && made.JSON201.Name == name, "create executor: %s", made.Body)
	twice := must(c.CreateExecutorWithResponse(ctx, carillon.CreateExecutorInputBody{Name: name}))
	check(twice.ApplicationproblemJSON409 != nil && twice.ApplicationproblemJSON409.Code == carillon.ProblemCodeConflict, "the same name again: %s", twice.Body)

	// All executors by pages of one, until the one with an instance is there too.
	var executor string
	pages, found := 0, false
	params := &carillon.ListExecutorsParams{Limit: ptr(int64(1))}
	for {
		page := must(c.ListExecutorsWithResponse(ctx, params))
		if page.JSON200 == nil {
			must(0, fmt.Errorf("list executors: %s", page.Body))
		}
		pages++
		for _, e := range page.JSON200.Items {
			found = found || e.Name == name
			if e.InstancesOnline > 0 {
				executor = e.Id
			}
		}
		if page.JSON200.NextCursor == nil {
			break
		}
		params.Cursor = page.JSON200.NextCursor
	}
	check(pages >= 2 && found && executor != "", "%d pages, the new one found: %v, one online: %q", pages, found, executor)

	job := must(c.CreateJobWithResponse(ctx, nil, carillon.JobWrite{
		Name: name, Executor: carillon.ExecutorChoice{Id: &executor}, Handler: os.Getenv("CARILLON_HANDLER"),
		Schedule: carillon.ScheduleWrite{Kind: carillon.ScheduleWriteKindNone},
	}))
	if job.JSON201 == nil {
		must(0, fmt.Errorf("create job: %s", job.Body))
	}
	id := job.JSON201.Id
	check(job.JSON201.Declared == nil && job.JSON201.LastRun == nil && job.JSON201.NextFireAt == nil, "what is not there is null: %s", job.Body)
	unfit := must(c.CreateJobWithResponse(ctx, nil, carillon.JobWrite{Name: "x", Executor: carillon.ExecutorChoice{Id: &executor}, Handler: "there-is-none", Schedule: carillon.ScheduleWrite{Kind: carillon.ScheduleWriteKindCron}}))
	check(unfit.ApplicationproblemJSON422 != nil && unfit.ApplicationproblemJSON422.Errors != nil && len(*unfit.ApplicationproblemJSON422.Errors) > 0, "wrong fields are listed: %s", unfit.Body)
	got := must(c.GetJobWithResponse(ctx, id))
	check(got.JSON200 != nil && got.JSON200.Revision == 1, "get job: %s", got.Body)

	run := func(wait, key *string) *carillon.RunJobResponse {
		return must(c.RunJobWithResponse(ctx, id, &carillon.RunJobParams{Wait: wait, IdempotencyKey: key}, carillon.RunRequest{}))
	}
	first := run(nil, ptr(name))
	check(first.JSON201 != nil, "run: %s", first.Body)
	replay := run(nil, ptr(name))
	check(first.JSON201 != nil && replay.JSON200 != nil && replay.JSON200.Id == first.JSON201.Id, "the same key: %s", replay.Body)
	hurried := run(ptr("1ms"), nil)
	check(hurried.JSON202 != nil && hurried.JSON202.Code != nil && *hurried.JSON202.Code == carillon.StartedRunCodeWaitTimedOut, "not waited for: %s", hurried.Body)
	ended := run(ptr("30s"), nil)
	check(ended.JSON201 != nil && ended.JSON201.State == carillon.StartedRunStateSucceeded && ended.JSON201.Instance != nil, "waited for: %s", ended.Body)
	if ended.JSON201 == nil {
		finish()
	}
	whole := must(c.GetRunWithResponse(ctx, ended.JSON201.Id, nil))
	check(whole.JSON200 != nil && len(whole.JSON200.Attempts) == 1, "get run: %s", whole.Body)
	why := must(c.ExplainRunWithResponse(ctx, ended.JSON201.Id, nil))
	check(why.JSON200 != nil && why.JSON200.Run != nil && why.JSON200.Stamps != nil && why.JSON200.Backfill == nil && why.JSON200.Summary.En != "", "explain: %s", why.Body)
	never := must(c.ExplainFireWithResponse(ctx, id, &carillon.ExplainFireParams{At: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}))
	check(never.JSON200 != nil && never.JSON200.Run == nil && never.JSON200.Stamps == nil, "no run at that instant: %s", never.Body)
	runs := must(c.ListRunsWithResponse(ctx, &carillon.ListRunsParams{JobId: &id, Limit: ptr(int64(2))}))
	check(runs.JSON200 != nil && len(runs.JSON200.Items) == 2 && runs.JSON200.NextCursor != nil, "list runs: %s", runs.Body)
	same := must(c.ListExecutorsWithResponse(ctx, nil))
	tag := same.HTTPResponse.Header.Get("ETag")
	unchanged := must(c.GetRunWithResponse(ctx, ended.JSON201.Id, &carillon.GetRunParams{IfNoneMatch: ptr(whole.HTTPResponse.Header.Get("ETag"))}))
	check(tag != "" && unchanged.StatusCode() == http.StatusNotModified && unchanged.JSON200 == nil, "not sent again: %d %s", unchanged.StatusCode(), unchanged.Body)

	gone := must(c.DeleteJobWithResponse(ctx, id))
	check(gone.StatusCode() == http.StatusNoContent, "delete: %s", gone.Body)
	after := must(c.GetJobWithResponse(ctx, id))
	check(after.ApplicationproblemJSON404 != nil && after.ApplicationproblemJSON404.Code == carillon.ProblemCodeNotFound, "after that: %s", after.Body)
	finish()
}
