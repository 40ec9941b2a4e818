package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// The fields of a job: those that can be written, and those that `job get`
// shows beside them. A file may hold both, so that a job can be got, edited
// and put back.
var (
	writable = []string{
		"name", "description", "labels", "executor", "handler", "input", "script", "schedule", "misfire", "routing", "routingKey",
		"requireLabels", "preferLabels", "blocking", "parallelism", "maxWaiting", "retry", "sendRetry", "timeout", "dispatchTimeout", "onLost", "onSuccess", "onFailure",
		"priority", "logLevel", "owner", "alert", "sharding", "state",
	}
	readOnly = []string{
		"id", "kind", "pauseNote", "pausedBy", "pausedAt", "source", "declared", "revision", "nextFireAt", "neverFires", "awaitsRun", "lastRun", "recentRuns", "stats7d", "waiting", "pilesUp", "executorOnline",
		"createdAt", "updatedAt", "createdBy", "updatedBy",
	}
)

// jobFile is a job as a file has it.
type jobFile struct {
	fields   map[string]json.RawMessage // writable ones
	id       string
	name     string
	state    string
	revision int64 // 0 = the file does not say
}

// readJobFile reads a file with one job.
func readJobFile(a *cli.App, path string) (jobFile, error) {
	files, err := readJobFiles(a, path)
	if err == nil && len(files) != 1 {
		err = cli.Usagef("%s: has %s, want one", path, spelling.Count(len(files), "job", ""))
	}
	if err != nil {
		return jobFile{}, err
	}
	return files[0], nil
}

// readJobFiles reads YAML or JSON; "-" is standard input. Many jobs are a list,
// or one document each.
func readJobFiles(a *cli.App, path string) ([]jobFile, error) {
	objects, err := a.Objects(path)
	if err != nil {
		return nil, err
	}
	files := make([]jobFile, len(objects))
	for i, all := range objects {
		if files[i], err = jobFileOf(path, all); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func jobFileOf(path string, all map[string]json.RawMessage) (jobFile, error) {
	if all["kind"] != nil && all["spec"] != nil {
		return jobFile{}, cli.Usagef("%s: it has documents with kind and spec: write them with carillon apply", path)
	}
	f := jobFile{fields: map[string]json.RawMessage{}}
	for key, value := range all {
		switch {
		case slices.Contains(writable, key):
			f.fields[key] = value
		case !slices.Contains(readOnly, key):
			return jobFile{}, cli.Usagef("%s: a job has no field %q; fields are %s", path, key, strings.Join(writable, ", "))
		}
	}
	// Ids may be written as numbers in YAML; what does not fit stays empty and
	// is judged by the server.
	f.id = strings.Trim(string(all["id"]), `"`)
	_ = json.Unmarshal(all["name"], &f.name)
	_ = json.Unmarshal(all["state"], &f.state)
	_ = json.Unmarshal(all["revision"], &f.revision)
	return f, nil
}

// lenientFlags are for jobs that are made before their application is deployed.
func lenientFlags(cmd *cobra.Command, allow *apiclient.CreateJobParams) {
	cmd.Flags().BoolVar(&allow.AllowUnknownHandler, "allow-unknown-handler", false, "accept a handler that no instance has registered yet")
	cmd.Flags().BoolVar(&allow.AllowUnfitInput, "allow-unfit-input", false, "accept an input that does not fit what is registered of the handler")
}

func jobCreate(a *cli.App) *cobra.Command {
	var file string
	var allow apiclient.CreateJobParams
	cmd := &cobra.Command{
		Use: "create -f FILE", Short: "Create a job, or many, from a YAML or JSON file", Args: cobra.NoArgs,
		Long: `Creates the job of a file, or many: a list of jobs, or several YAML documents. The fields
are those that "carillon job get JOB -o yaml" writes. Jobs that are refused do not keep
the others from being created. Each is told with its reason, and the reason of the first
one gives the exit code.

A job that exists already is refused. To create and change jobs with the same file, write
them as documents: carillon apply, carillon export Job.`,
		Example: "  carillon job create -f close-day.yaml\n" +
			"  echo '{name: hello, executor: {name: shop}, handler: hello, schedule: {kind: none}}' | carillon job create -f -",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file == "" {
				return cli.Usagef("name the job's file with -f (- is standard input)")
			}
			files, err := readJobFiles(a, file)
			if err != nil {
				return err
			}
			specs := make([]json.RawMessage, len(files))
			for i := range files {
				if specs[i], err = json.Marshal(files[i].fields); err != nil {
					return err
				}
			}
			if len(specs) > 1 {
				return createJobs(a, cmd, s, specs, allow)
			}
			job, err := s.CreateJob(cmd.Context(), allow, apiclient.JobWrite{}, apiclient.Body(specs[0]))
			if err != nil {
				return err
			}
			a.Say("Created job %s.", output.Clean(job.Value.Name))
			warnNever(a, job.Value)
			return output.One(s.Printer, jobView(a.Now()), job)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the job; - is standard input")
	lenientFlags(cmd, &allow)
	return cmd
}

// createJobs tells of each job that is refused, and prints those that are made.
func createJobs(a *cli.App, cmd *cobra.Command, s *cli.Session, specs []json.RawMessage, allow apiclient.CreateJobParams) error {
	created := []apiclient.Doc[apiclient.JobBatchItem]{}
	var failed error
	err := inBatches(specs, func(items []json.RawMessage) error {
		answer, err := s.CreateJobs(cmd.Context(), apiclient.CreateJobsParams(allow), apiclient.CreateJobsInputBody{},
			apiclient.Body(map[string]any{"items": items}))
		if err != nil {
			return err
		}
		page, err := apiclient.Items[apiclient.JobBatchItem](answer)
		for _, item := range page.Items {
			if item.Value.Problem == nil {
				created = append(created, item)
				continue
			}
			err := fmt.Errorf("job %s: %w", item.Value.Name, item.Value.Problem)
			cli.Tell(a.Err, cmd, err, cli.CodeFor(cmd, err))
			if failed == nil {
				failed = cli.Fail(cli.CodeFor(cmd, err), nil)
			}
		}
		return err
	})
	a.Say("Created %d of %s.", len(created), spelling.Count(len(specs), "job", ""))
	warnNeverOf(cmd, a, s, created)
	return errors.Join(failed, err, output.List(s.Printer, output.View[apiclient.JobBatchItem]{
		Name: func(j apiclient.JobBatchItem) string { return j.Name },
		Columns: []output.Column[apiclient.JobBatchItem]{
			{Title: "ID", Value: func(j apiclient.JobBatchItem) string { return j.ID }},
			{Title: "NAME", Value: func(j apiclient.JobBatchItem) string { return j.Name }},
		},
	}, created))
}

// warnNever says of a job that was saved that its schedule has no fire time.
func warnNever(a *cli.App, j apiclient.Job) {
	if j.NeverFires {
		a.Say("Warning: the job %s never fires by itself: its schedule has no fire time from now on (%s).", output.Clean(j.Name), output.Clean(scheduleCell(j.Schedule)))
	}
}

// warnNeverOf is warnNever for many that were created. The answer does not say it of
// them, so that they are listed; when that fails the jobs are created all the same.
func warnNeverOf(cmd *cobra.Command, a *cli.App, s *cli.Session, created []apiclient.Doc[apiclient.JobBatchItem]) {
	if len(created) == 0 {
		return
	}
	fresh := map[string]bool{}
	for _, j := range created {
		fresh[j.Value.ID] = true
	}
	never, err := apiclient.List[apiclient.Job](cmd.Context(), 0, s.ListJobs, apiclient.ListJobsParams{NeverFires: true})
	if err != nil {
		a.Say("Whether all of them have a fire time is not known: %s", output.Clean(err.Error()))
		return
	}
	for _, j := range never {
		if fresh[j.Value.ID] {
			warnNever(a, j.Value)
		}
	}
}

// The most that one request for many jobs holds: how many, and bytes in all (the
// server takes 1 MiB).
const (
	maxBatch      = 1000
	maxBatchBytes = 900 << 10
)

// inBatches calls create with as many jobs as one request may hold, in order.
func inBatches(specs []json.RawMessage, create func([]json.RawMessage) error) error {
	for len(specs) > 0 {
		n, bytes := 0, 0
		for n < len(specs) && n < maxBatch && (n == 0 || bytes+len(specs[n]) <= maxBatchBytes) {
			bytes += len(specs[n]) + 1
			n++
		}
		if err := create(specs[:n]); err != nil {
			return err
		}
		specs = specs[n:]
	}
	return nil
}

func jobEdit(a *cli.App) *cobra.Command {
	var file string
	var allow apiclient.CreateJobParams
	var force bool
	cmd := &cobra.Command{
		Use: "edit [JOB] -f FILE", Short: "Replace a job's settings by those of a file", Args: cobra.MaximumNArgs(1),
		Long: `Replaces a job's settings by those of a file, usually one that "job get -o yaml"
wrote. JOB may be left out when the file has the job's id or name. If the file has
a revision and somebody changed the job since, nothing is written (exit code 5).`,
		Example:           "  carillon job get close-day -o yaml > job.yaml; vi job.yaml; carillon job edit -f job.yaml\n  carillon job edit close-day -f other.yaml",
		ValidArgsFunction: a.CompleteJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return cli.Usagef("name the job's file with -f (- is standard input)")
			}
			return editJob(a, cmd, args, file, allow, force)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the job; - is standard input")
	lenientFlags(cmd, &allow)
	cmd.Flags().BoolVar(&force, "force", false, "write over newer changes: ignore the revision in the file")
	return cmd
}

func editJob(a *cli.App, cmd *cobra.Command, args []string, file string, allow apiclient.CreateJobParams, force bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	f, err := readJobFile(a, file)
	if err != nil {
		return err
	}
	word := f.id
	if len(args) > 0 {
		word = args[0]
	} else if word == "" {
		word = f.name
	}
	if word == "" {
		return cli.Usagef("which job? %s has neither id nor name", file)
	}
	job, err := cli.FindJob(cmd.Context(), s, word)
	if err != nil {
		return err
	}
	revision := f.revision
	if revision == 0 || force {
		revision = job.Value.Revision
	}
	if f.state != "" && f.state != job.Value.State {
		a.Say("Note: the job stays %s; use job pause or job resume.", job.Value.State)
	}
	delete(f.fields, "state")
	spec, err := json.Marshal(f.fields)
	if err != nil {
		return err
	}
	job, err = s.UpdateJob(cmd.Context(), job.Value.ID, apiclient.UpdateJobParams{
		AllowUnknownHandler: allow.AllowUnknownHandler, AllowUnfitInput: allow.AllowUnfitInput, IfMatch: cli.ETag(revision),
	}, apiclient.JobWrite{}, apiclient.Body(json.RawMessage(spec)))
	if err != nil {
		return err
	}
	a.Say("Job %s is now at revision %d.", output.Clean(job.Value.Name), job.Value.Revision)
	warnNever(a, job.Value)
	return output.One(s.Printer, jobView(a.Now()), job)
}
