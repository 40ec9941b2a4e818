package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// FindJob takes an id or a name. A list leaves the input out.
func FindJob(ctx context.Context, s *Session, word string) (out apiclient.Doc[apiclient.Job], err error) {
	list, err := apiclient.List[apiclient.Job](ctx, 0, s.ListJobs, apiclient.ListJobsParams{Q: word, Kind: "all"})
	id, err := IDOf("job", word, list, err, func(j apiclient.Job) (id, name string) { return j.ID, j.Name })
	if err != nil {
		return out, err
	}
	return s.GetJob(ctx, id)
}

// IDOf finds the id of what is named word, or is it. Names are unique, and win: a job
// may be called 2026.
func IDOf[T any](kind, word string, list []apiclient.Doc[T], err error, of func(T) (id, name string)) (string, error) {
	if err != nil {
		return "", err
	}
	near := []string{}
	for _, d := range list {
		id, name := of(d.Value)
		if name == word {
			return id, nil
		}
		near = append(near, name)
	}
	if IsID(word) {
		return word, nil
	}
	return "", NotFound(kind, word, near)
}

// FindListed is IDOf for what a list has all of; get asks for what is not in it.
func FindListed[T any](
	ctx context.Context, kind, word string, list []apiclient.Doc[T], err error, of func(T) (id, name string),
	get func(context.Context, string, ...apiclient.Edit) (apiclient.Doc[T], error),
) (apiclient.Doc[T], error) {
	id, err := IDOf(kind, word, list, err, of)
	if err != nil {
		return apiclient.Doc[T]{}, err
	}
	for _, d := range list {
		if known, _ := of(d.Value); known == id {
			return d, nil
		}
	}
	return get(ctx, id)
}

// IsID says whether a word can be an id: ids are decimal numbers.
func IsID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && n > 0
}

// NotFound says that nothing of a kind is named word, and what is nearly.
func NotFound(kind, word string, near []string) error {
	text := fmt.Sprintf("there is no %s %q", kind, word)
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near[:min(3, len(near))], " or ") + "?"
	} else {
		text += fmt.Sprintf("; see: carillon %s list", kind)
	}
	return &exitError{ExitNotFound, errors.New(text)}
}

// ListExecutors lists executors whose names have query in them; limit 0 lists all.
func ListExecutors(ctx context.Context, s *Session, query string, limit int) ([]apiclient.Doc[apiclient.Executor], error) {
	return apiclient.List[apiclient.Executor](ctx, limit, s.ListExecutors, apiclient.ListExecutorsParams{Q: query})
}

// FindExecutor takes a name or an id.
func FindExecutor(ctx context.Context, s *Session, word string) (apiclient.Ref, error) {
	list, err := ListExecutors(ctx, s, word, 0)
	id, err := IDOf("executor", word, list, err, func(e apiclient.Executor) (id, name string) { return e.ID, e.Name })
	if err != nil || id != word {
		return apiclient.Ref{ID: id, Name: word}, err
	}
	e, err := s.GetExecutor(ctx, id)
	return apiclient.Ref{ID: id, Name: e.Value.Name}, err
}
