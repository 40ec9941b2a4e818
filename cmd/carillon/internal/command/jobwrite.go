package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

// The fields of a job: those that can be written, and those that `job get`
// shows beside them. A file may hold both, so that a job can be got, edited
// and put back.
var (
	writable = []string{
		"name", "description", "labels", "executor", "handler", "input", "script", "schedule", "misfire", "routing", "routingKey",
		"requireLabels", "preferLabels", "blocking", "parallelism", "retry", "sendRetry", "timeout", "dispatchTimeout", "onLost", "onSuccess", "onFailure",
		"priority", "logLevel", "owner", "alert", "sharding", "state",
	}
	readOnly = []string{
		"id", "pauseNote", "source", "declared", "revision", "nextFireAt", "neverFires", "awaitsRun", "lastRun", "executorOnline",
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

// readJobFile reads YAML or JSON; "-" is standard input.
func (a *App) readJobFile(path string) (jobFile, error) {
	raw, err := a.readInput(path)
	if err != nil {
		return jobFile{}, err
	}
	all, err := yamlToJSON(raw)
	if err != nil {
		return jobFile{}, usagef("%s: %w", path, err)
	}
	f := jobFile{fields: map[string]json.RawMessage{}}
	for key, value := range all {
		switch {
		case slices.Contains(writable, key):
			f.fields[key] = value
		case !slices.Contains(readOnly, key):
			return jobFile{}, usagef("%s: a job has no field %q; fields are %s", path, key, strings.Join(writable, ", "))
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

// yamlToJSON reads one YAML document (JSON is YAML) with an object at its top.
func yamlToJSON(raw []byte) (map[string]json.RawMessage, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read YAML: more than one document")
	}
	out := make(map[string]json.RawMessage, len(value))
	for key, v := range value {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", key, err)
		}
		out[key] = text
	}
	return out, nil
}

func (a *App) readInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(a.in)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return raw, nil
}

// lenientFlags are for jobs that are made before their application is deployed.
func lenientFlags(cmd *cobra.Command, allow *client.Lenient) {
	cmd.Flags().BoolVar(&allow.UnknownHandler, "allow-unknown-handler", false, "accept a handler that no instance has registered yet")
	cmd.Flags().BoolVar(&allow.UnfitInput, "allow-unfit-input", false, "accept an input that does not fit what is registered of the handler")
}

func (a *App) jobCreate() *cobra.Command {
	var file string
	var allow client.Lenient
	cmd := &cobra.Command{
		Use: "create -f FILE", Short: "Create a job from a YAML or JSON file", Args: cobra.NoArgs,
		Example: "  carillon job create -f close-day.yaml\n" +
			"  echo '{name: hello, executor: {name: shop}, handler: hello, schedule: {kind: none}}' | carillon job create -f -",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("name the job's file with -f (- is standard input)")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			f, err := a.readJobFile(file)
			if err != nil {
				return err
			}
			spec, err := json.Marshal(f.fields)
			if err != nil {
				return err
			}
			job, err := s.CreateJob(cmd.Context(), spec, allow)
			if err != nil {
				return err
			}
			a.say("Created job %s.", output.Clean(job.Value.Name))
			return output.One(s.Printer, jobView(a.now()), job)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the job; - is standard input")
	lenientFlags(cmd, &allow)
	return cmd
}

func (a *App) jobEdit() *cobra.Command {
	var file string
	var allow client.Lenient
	var force bool
	cmd := &cobra.Command{
		Use: "edit [JOB] -f FILE", Short: "Replace a job's settings by those of a file", Args: cobra.MaximumNArgs(1),
		Long: `Replaces a job's settings by those of a file, usually one that "job get -o yaml"
wrote. JOB may be left out when the file has the job's id or name. If the file has
a revision and somebody changed the job since, nothing is written (exit code 5).`,
		Example:           "  carillon job get close-day -o yaml > job.yaml; vi job.yaml; carillon job edit -f job.yaml\n  carillon job edit close-day -f other.yaml",
		ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef("name the job's file with -f (- is standard input)")
			}
			return a.editJob(cmd, args, file, allow, force)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the job; - is standard input")
	lenientFlags(cmd, &allow)
	cmd.Flags().BoolVar(&force, "force", false, "write over newer changes: ignore the revision in the file")
	return cmd
}

func (a *App) editJob(cmd *cobra.Command, args []string, file string, allow client.Lenient, force bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	f, err := a.readJobFile(file)
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
		return usagef("which job? %s has neither id nor name", file)
	}
	job, err := findJob(cmd.Context(), s, word)
	if err != nil {
		return err
	}
	revision := f.revision
	if revision == 0 || force {
		revision = job.Value.Revision
	}
	if f.state != "" && f.state != job.Value.State {
		a.say("Note: the job stays %s; use job pause or job resume.", job.Value.State)
	}
	delete(f.fields, "state")
	spec, err := json.Marshal(f.fields)
	if err != nil {
		return err
	}
	job, err = s.ReplaceJob(cmd.Context(), job.Value.ID, revision, spec, allow)
	if err != nil {
		return err
	}
	a.say("Job %s is now at revision %d.", output.Clean(job.Value.Name), job.Value.Revision)
	return output.One(s.Printer, jobView(a.now()), job)
}
