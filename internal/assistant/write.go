package assistant

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

type runJobInput struct {
	Job            string `json:"job" jsonschema:"name or id of the job, or words that one job alone has in its name"`
	Input          any    `json:"input,omitempty" jsonschema:"JSON for the handler; default: the job's own"`
	Note           string `json:"note,omitempty" jsonschema:"why; shown beside the run"`
	At             string `json:"at,omitempty" jsonschema:"not before this instant, RFC 3339; default: now"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"the same key with the same arguments gives the same run; give the one of an earlier answer to repeat a call of which you do not know the outcome"`
}

type pauseJobInput struct {
	Job  string `json:"job" jsonschema:"name or id of the job, or words that one job alone has in its name"`
	Note string `json:"note,omitempty" jsonschema:"why; shown beside the job"`
}

type resumeJobInput struct {
	jobInput
	Mine bool `json:"mine,omitempty" jsonschema:"resume the job only if your user paused it; else it stays paused"`
}

type retryRunInput struct {
	Run            string `json:"run" jsonschema:"id of a run that has ended"`
	OnlyFailed     bool   `json:"only_failed,omitempty" jsonschema:"of a run with shards: only those that did not succeed"`
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"the same key with the same arguments gives the same run; give the one of an earlier answer to repeat a call of which you do not know the outcome"`
}

type cancelRunInput struct {
	Run    string `json:"run" jsonschema:"id of the run"`
	Reason string `json:"reason,omitempty" jsonschema:"why; shown beside the run"`
}

type startedRun struct {
	run
	IdempotencyKey string `json:"idempotency_key" jsonschema:"repeat the call with it to get this run rather than another one"`
}

func (s *server) addWrites() {
	add(s, adds, "run_job", "Run a job", "Start a run of a job now, or once later, also while it is paused. Have your user agree first.",
		[]string{"list-jobs", "get-job", "run-job"}, s.runJob)
	add(s, ends, "pause_job", "Pause a job", "Stop a job's schedule until somebody resumes it. Runs that go on are not stopped. A job that is paused already keeps its pause. Have your user agree first, and give a note.",
		[]string{"list-jobs", "get-job", "pause-job"}, s.pauseJob)
	add(s, changes, "resume_job", "Resume a job", "Start a paused job's schedule again, with the first fire time from now; what it missed is not made up. Have your user agree first.",
		[]string{"list-jobs", "get-job", "resume-job"}, s.resumeJob)
	add(s, adds, "retry_run", "Retry a run", "Run a run that has ended again, with the same input. Have your user agree first: the work is done once more.",
		[]string{"retry-run"}, s.retryRun)
	add(s, ends, "cancel_run", "Cancel a run", "Stop a run: one that has not started ends at once, a running handler is asked to stop. Have your user agree first, and give a reason.",
		[]string{"cancel-run"}, s.cancelRun)
}

// maxWritten is less than what the API takes for a note, 1,024, because what is cut
// says so.
const maxWritten = 950

func keyOr(given string) string {
	if given != "" {
		return given
	}
	return "mcp-" + rand.Text()
}

// unsure says how to repeat a call that may have been done.
func unsure(err error, key string) error {
	_, lost := errors.AsType[*apiclient.TransportError](err)
	if lost || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return failf("There is no answer: %s. The run may have been started. To learn that without starting another one, repeat the call with idempotency_key %q.", clean(err.Error(), maxNote), key)
	}
	return err
}

func (s *server) runJob(ctx context.Context, in runJobInput) (a answer[startedRun], err error) {
	j, err := s.findJob(ctx, in.Job)
	if err != nil {
		return a, err
	}
	request := apiclient.RunRequest{Note: clean(in.Note, maxWritten)}
	if in.Input != nil {
		if request.Input, err = json.Marshal(in.Input); err != nil {
			return a, err
		}
	}
	if in.At != "" {
		at, err := instantIn(in.At, j.Schedule.Zone)
		if err != nil {
			return a, err
		}
		request.At = stamp(at)
	}
	key := keyOr(in.IdempotencyKey)
	started, err := s.Client.RunJob(ctx, j.ID, apiclient.RunJobParams{IdempotencyKey: key}, request)
	if err != nil {
		return a, unsure(err, key)
	}
	return startedOf(started, key)
}

func (s *server) retryRun(ctx context.Context, in retryRunInput) (a answer[startedRun], err error) {
	key := keyOr(in.IdempotencyKey)
	started, err := s.Client.RetryRun(ctx, strings.TrimSpace(in.Run), apiclient.RetryRunParams{IdempotencyKey: key}, apiclient.RetryRunInputBody{OnlyFailed: in.OnlyFailed})
	if err != nil {
		return a, unsure(err, key)
	}
	return startedOf(started, key)
}

func startedOf(doc apiclient.Doc[apiclient.StartedRun], key string) (a answer[startedRun], err error) {
	r, err := apiclient.As[apiclient.Run](doc)
	if err != nil {
		return a, err
	}
	a.data = startedRun{runOf(&r.Value), key}
	word := "Asked for"
	if doc.Status == 200 {
		word = "The key was known: no other run was started. It is"
	}
	a.text = fmt.Sprintf("%s %s.\nFollow it with get_run; repeat the call with idempotency_key %q to get the same run.\n", word, a.data.line(), key)
	return a, nil
}

func (s *server) pauseJob(ctx context.Context, in pauseJobInput) (a answer[job], err error) {
	j, err := s.findJob(ctx, in.Job)
	if err != nil {
		return a, err
	}
	after, err := s.Client.PauseJob(ctx, j.ID, apiclient.PauseInputBody{Note: clean(in.Note, maxWritten)})
	if err != nil {
		return a, err
	}
	a.data = jobOf(&after.Value)
	a.text = "Paused. " + a.data.line() + "\n"
	return a, nil
}

func (s *server) resumeJob(ctx context.Context, in resumeJobInput) (a answer[job], err error) {
	j, err := s.findJob(ctx, in.Job)
	if err != nil {
		return a, err
	}
	after, err := s.Client.ResumeJob(ctx, j.ID, apiclient.ResumeJobParams{Mine: in.Mine})
	if err != nil {
		return a, err
	}
	a.data = jobOf(&after.Value)
	word := "Resumed. "
	if a.data.State == "paused" {
		word = "Not resumed: your user did not pause it. "
	}
	a.text = word + a.data.line() + "\n"
	return a, nil
}

func (s *server) cancelRun(ctx context.Context, in cancelRunInput) (a answer[run], err error) {
	after, err := s.Client.CancelRun(ctx, strings.TrimSpace(in.Run), apiclient.CancelRunInputBody{Reason: clean(in.Reason, maxWritten)})
	if err != nil {
		return a, err
	}
	a.data = runOf(&after.Value)
	a.text = "Asked to stop: " + a.data.line() + "\n"
	return a, nil
}
