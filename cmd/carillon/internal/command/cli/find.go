package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// FindJob takes an id or a name. A list leaves the input out.
func FindJob(ctx context.Context, s *Session, word string) (apiclient.Doc[apiclient.Job], error) {
	get := func(ctx context.Context, id string, edits ...apiclient.Edit) (apiclient.Doc[apiclient.Job], error) {
		return s.GetJob(ctx, id, apiclient.GetJobParams{}, edits...)
	}
	job, err := Find(ctx, "job", "job list", word, get, func() ([]apiclient.Doc[apiclient.Job], error) {
		return apiclient.List[apiclient.Job](ctx, 0, s.ListJobs, apiclient.ListJobsParams{Q: word, Kind: "all"})
	}, func(j apiclient.Job) (id, name string) { return j.ID, j.Name })
	if CodeOf(err) == ExitNotFound {
		err = NotFound("job", "job list", word, like(word, func(part string) (names []string, _ error) {
			list, err := apiclient.List[apiclient.Job](ctx, mostLike, s.ListJobs, apiclient.ListJobsParams{Q: part, Kind: "all"})
			for _, j := range list {
				names = append(names, j.Value.Name)
			}
			return names, err
		}))
	}
	return job, err
}

// mostLike bounds the names in which those that are like a word are looked for.
const mostLike = 200

// like lists names that have a half of a word in them: a name that is misspelt has the other half.
// It is best effort.
func like(word string, list func(part string) ([]string, error)) (names []string) {
	runes := []rune(word)
	for _, part := range []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:]), ""} {
		found, err := list(part)
		if err != nil || spelling.Hint(word, found) != "" {
			return found
		}
	}
	return nil
}

// Find finds an object by its id or its name. The id wins. Otherwise
// a job could get the name of another one's id, and with it the commands for that one.
// A job called 2026 is found, because no job has that id. see is the command that lists them,
// after carillon.
func Find[T, Listed any](
	ctx context.Context, kind, see, word string, get func(context.Context, string, ...apiclient.Edit) (apiclient.Doc[T], error),
	list func() ([]apiclient.Doc[Listed], error), of func(Listed) (id, name string),
) (apiclient.Doc[T], error) {
	if IsID(word) {
		if found, err := get(ctx, word); CodeOf(err) != ExitNotFound {
			return found, err
		}
	}
	all, err := list()
	if err != nil {
		return apiclient.Doc[T]{}, err
	}
	near := []string{}
	for _, d := range all {
		id, name := of(d.Value)
		if name == word {
			return get(ctx, id)
		}
		near = append(near, name)
	}
	return apiclient.Doc[T]{}, NotFound(kind, see, word, near)
}

// Listed is Find in a list that has all there are.
func Listed[T any](kind, see, word string, list []apiclient.Doc[T], err error, of func(T) (id, name string)) (apiclient.Doc[T], error) {
	if err != nil {
		return apiclient.Doc[T]{}, err
	}
	near, named := []string{}, -1
	for i, d := range list {
		id, name := of(d.Value)
		if id == word {
			return d, nil
		}
		if name == word && named < 0 { // of deleted ones, the last deleted comes first
			named = i
		}
		near = append(near, name)
	}
	if named >= 0 {
		return list[named], nil
	}
	return apiclient.Doc[T]{}, NotFound(kind, see, word, near)
}

// IsID says whether a word can be an id: ids are decimal numbers.
func IsID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && n > 0
}

// NotFound says that nothing of a kind is named word, and what is nearly, or else the command that
// lists them, after carillon.
func NotFound(kind, see, word string, near []string) error {
	text := fmt.Sprintf("there is no %s %q", kind, word)
	if hint := spelling.Hint(word, near); hint != "" {
		text += "; " + hint
	} else {
		text += fmt.Sprintf("; see: carillon %s", see)
	}
	return &exitError{ExitNotFound, errors.New(text)}
}

// ListExecutors lists executors whose names have query in them; limit 0 lists all.
func ListExecutors(ctx context.Context, s *Session, query string, limit int) ([]apiclient.Doc[apiclient.Executor], error) {
	return apiclient.List[apiclient.Executor](ctx, limit, s.ListExecutors, apiclient.ListExecutorsParams{Q: query})
}

// FindExecutor takes an id or a name.
func FindExecutor(ctx context.Context, s *Session, word string) (apiclient.Ref, error) {
	e, err := Find(ctx, "executor", "executor list", word, s.GetExecutor, func() ([]apiclient.Doc[apiclient.Executor], error) {
		return ListExecutors(ctx, s, word, 0)
	}, func(e apiclient.Executor) (id, name string) { return e.ID, e.Name })
	if CodeOf(err) == ExitNotFound {
		err = NotFound("executor", "executor list", word, like(word, func(part string) (names []string, _ error) {
			list, err := ListExecutors(ctx, s, part, mostLike)
			for _, e := range list {
				names = append(names, e.Value.Name)
			}
			return names, err
		}))
	}
	return apiclient.Ref{ID: e.Value.ID, Name: e.Value.Name}, err
}
