package assistant

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// maxFound bounds how many are looked through for a name: descriptions match, too.
const maxFound = 1_000

// findJob takes an id, a name, or words that one job alone has in its name: people
// say "nightly report" of nightly-report. An id wins over names. Otherwise a
// job could get the name of another one's id, and with it the requests for that one.
func (s *server) findJob(ctx context.Context, word string) (apiclient.Job, error) {
	word = strings.TrimSpace(word)
	if word == "" {
		return apiclient.Job{}, failf("Which job? Give its name or id; list_jobs finds it.")
	}
	if isID(word) {
		if job, err := s.Client.GetJob(ctx, word, apiclient.GetJobParams{}); !missing(err) {
			return job.Value, err
		}
	}
	words, longest := wordsOf(word)
	jobs, err := apiclient.List[apiclient.Job](ctx, maxFound, s.Client.ListJobs, apiclient.ListJobsParams{Q: longest, Kind: "all"})
	if err != nil {
		return apiclient.Job{}, err
	}
	id := ""
	var named []apiclient.Job
	for _, doc := range jobs {
		j := doc.Value
		if j.Name == word {
			id, named = j.ID, nil
			break
		}
		in := strings.ToLower(j.Name)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(in, w) }) {
			named = append(named, j)
		}
	}
	switch {
	case id != "":
	case len(named) == 1 && len(jobs) < maxFound:
		id = named[0].ID
	case len(named) == 0:
		return apiclient.Job{}, failf("There is no job whose name has %s in it. list_jobs shows what there is, and searches descriptions too.", name(word))
	default:
		near := []string{}
		for _, j := range named[:min(len(named), 10)] {
			near = append(near, name(j.Name)+" (id "+j.ID+")")
		}
		return apiclient.Job{}, failf("Several jobs have %s in their names: %s. Ask again with one of these names or ids.", name(word), strings.Join(near, ", "))
	}
	job, err := s.Client.GetJob(ctx, id, apiclient.GetJobParams{})
	return job.Value, err
}

// isID reports whether a word can be an id: ids are decimal numbers.
func isID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && n > 0
}

func missing(err error) bool {
	p, ok := errors.AsType[*apiclient.Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// wordsOf splits what somebody calls a job; longest is what to search for.
func wordsOf(text string) (words []string, longest string) {
	words = strings.FieldsFunc(strings.ToLower(clean(text, maxName)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		words = []string{strings.ToLower(clean(text, maxName))}
	}
	return words, slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
}

// findExecutor takes an id or a name.
func (s *server) findExecutor(ctx context.Context, word string) (apiclient.Executor, error) {
	if isID(word) {
		if one, err := s.Client.GetExecutor(ctx, word); !missing(err) {
			e := one.Value
			return apiclient.Executor{
				ID: e.ID, Name: e.Name, Kind: e.Kind, State: e.State, Note: e.Note, InstancesOnline: e.InstancesOnline, InstancesTotal: e.InstancesTotal, Handlers: int64(len(e.Handlers)),
			}, err
		}
	}
	found, err := apiclient.List[apiclient.Executor](ctx, maxFound, s.Client.ListExecutors, apiclient.ListExecutorsParams{Q: clean(word, maxName)})
	if err != nil {
		return apiclient.Executor{}, err
	}
	near := []string{}
	for _, e := range found {
		if e.Value.Name == word {
			return e.Value, nil
		}
		near = append(near, name(e.Value.Name))
	}
	if len(near) == 1 {
		return found[0].Value, nil
	}
	return apiclient.Executor{}, failf("There is no executor called %s. Near it: %s.", name(word), strings.Join(near[:min(len(near), 10)], ", "))
}

// pageSize bounds pages: an answer is read as a whole.
func pageSize(asked int64) int64 {
	if asked <= 0 {
		return 20
	}
	return min(asked, 100)
}

func cursorOf(next *string) string {
	if next == nil {
		return ""
	}
	return *next
}
