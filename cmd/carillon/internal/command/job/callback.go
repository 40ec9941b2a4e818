package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// tried is the callback that flags describe.
type tried struct {
	target   apiclient.CallbackTarget
	executor string
	headers  map[string]string
	through  string
	message  string
	on       string
}

func jobTryCallback(a *cli.App) *cobra.Command {
	var t tried
	cmd := &cobra.Command{
		Use: "try-callback [JOB]", Short: "Try a callback: one call, one message, or a look for the handler", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.CompleteJobs,
		Long: `Tries a callback of a job, or one that no job has yet. An address gets one signed call
with the header Carillon-Trial, and a connection gets one message. A handler is not run:
the answer tells whether an instance could run it. If it does not work, the exit code is 1.`,
		Example: "  carillon job try-callback close-day --on failure\n  carillon job try-callback --url https://api.example.com/ended --timeout 3s\n" +
			"  carillon job try-callback --handler booked --executor billing\n  carillon job try-callback --connection orders --target '{\"topic\":\"ended\"}'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			body, err := t.body(cmd, s, args)
			if err != nil {
				return err
			}
			got, err := s.TryCallback(cmd.Context(), body)
			if done, err := cli.PrintMachine(s, got, err); done {
				return err
			}
			return tellTrial(a, got.Value)
		}),
	}
	f := cmd.Flags()
	cli.ChoiceFlag(cmd, &t.on, "on", "success", []string{"success", "failure"}, "which callback of the job, and which end the trial tells of: success or failure")
	f.StringVar(&t.target.URL, "url", "", "address to call")
	settings.SpanTextVar(f, &t.target.Timeout, "timeout", "of the call (default 30s, or what the policy allows)")
	f.StringToStringVar(&t.headers, "header", nil, "header of the call, as Name=value")
	f.StringVar(&t.target.Handler, "handler", "", "handler to look for")
	f.StringVar(&t.executor, "executor", "", "executor of the handler")
	f.StringVar(&t.through, "connection", "", "connection to publish by")
	f.StringVar(&t.message, "target", "", "where the message belongs, as JSON")
	return cmd
}

// body is what is tried: of a job, or of the flags.
func (t *tried) body(cmd *cobra.Command, s *cli.Session, args []string) (out apiclient.CallbackTry, err error) {
	out.On = t.on
	if len(args) == 1 {
		job, err := cli.FindJob(cmd.Context(), s, args[0])
		if err != nil {
			return out, err
		}
		if out.Callback = job.Value.OnSuccess; t.on == "failure" {
			out.Callback = job.Value.OnFailure
		}
		if callbackCell(out.Callback) == "" {
			return out, cli.Usagef("the job %s has no callback on %s", job.Value.Name, t.on)
		}
		out.Executor = &apiclient.ExecutorChoice{ID: job.Value.Executor.ID}
		return out, nil
	}
	if t.executor != "" {
		t.target.Executor = &apiclient.ExecutorChoice{Name: t.executor}
	}
	if t.through != "" {
		t.target.Connection = &apiclient.ConnectionChoice{Name: t.through}
	}
	if t.message != "" {
		if err := json.Unmarshal([]byte(t.message), &t.target.Target); err != nil {
			return out, cli.Usagef("--target: %v", err)
		}
	}
	t.target.Headers = t.headers
	out.Callback, err = json.Marshal(t.target)
	return out, err
}

func tellTrial(a *cli.App, got apiclient.CallbackTrial) error {
	took := fmt.Sprintf("%d ms", got.DurationMs)
	if got.Timeout != "" {
		took += fmt.Sprintf(", %d%% of the timeout of %s", got.Used, got.Timeout)
	}
	if !got.Ok {
		if got.Kind != "handler" {
			return cli.Fail(cli.ExitFailed, errors.New(output.Clean(got.Message)+" (after "+took+")"))
		}
		return cli.Fail(cli.ExitFailed, errors.New(output.Clean(got.Message)))
	}
	switch got.Kind {
	case "url":
		a.Say("The answer is %d, after %s.", got.Status, took)
		if body := cli.FirstLine(got.Body); body != "" {
			a.Say("%s", output.Clean(body))
		}
	case "message":
		a.Say("The broker has the message, after %s.", took)
	default:
		a.Say("An instance is online, and the handler is known.")
	}
	return nil
}

// callbackCell is a callback in a line; empty: there is none.
func callbackCell(raw apiclient.Callback) string {
	var handler string
	if json.Unmarshal(raw, &handler) == nil {
		return handler
	}
	var t apiclient.CallbackTarget
	if json.Unmarshal(raw, &t) != nil {
		return ""
	}
	switch {
	case t.URL != "":
		return strings.TrimSpace(t.URL + " " + t.Timeout)
	case t.Connection != nil:
		return "connection " + t.Connection.Name
	case t.Executor != nil:
		return t.Handler + " of " + t.Executor.Name
	}
	return t.Handler
}
