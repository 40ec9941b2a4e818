package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Ref names another object.
type Ref struct {
	ID   string `json:"id" doc:"Its id, a decimal string"`
	Name string `json:"name" doc:"Its name"`
}

// Hidden stands for what only editors may read.
const Hidden = "…"

// IDInput is the input of operations on one object.
type IDInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
}

// IDPage is the input of lists of one object.
type IDPage struct {
	ShortPage
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
}

// Versioned is an answer that tells the version of what it has.
type Versioned[T any] struct {
	ETag string `header:"ETag" doc:"The version in quotes"`
	Body T
}

// Edited is an object to be written in place of the version that was read.
type Edited[T any] struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"The version that was edited, in quotes, as in ETag; * for any"`
	Body    T
}

// DisableInput is the input of operations that disable an object.
type DisableInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
	Body    *struct {
		Note string `json:"note,omitempty" maxLength:"512" doc:"Why; shown beside it and beside its jobs"`
	} `required:"false"`
}

// Note is why, without spaces around.
func (in *DisableInput) Note() string {
	if in.Body == nil {
		return ""
	}
	return strings.TrimSpace(in.Body.Note)
}

// EnableInput is the input of operations that enable one again.
type EnableInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
}

// ByID finds an object of the tenant by the id in the path.
func ByID[ID ~int64, T any](
	ctx context.Context, tenant domain.TenantID, text string, find func(context.Context, domain.TenantID, ID) (T, error),
) (found T, err error) {
	id, err := domain.ParseID[ID](text)
	if err != nil {
		return found, err
	}
	return find(ctx, tenant, id)
}

// AnswerOf carries what the store has answered with, as of shows it.
func AnswerOf[R, T any](row R, err error, of func(*R) T) (*struct{ Body T }, error) {
	if err != nil {
		return nil, err
	}
	return &struct{ Body T }{of(&row)}, nil
}

// NotThere says where the request names an object that does not exist.
func NotThere(location, what, value string) error {
	message := "there is no such " + what
	return &domain.Error{
		Code: domain.CodeNotFound, Message: location + ": " + message,
		Fields: []domain.FieldError{{Location: location, Message: message, Value: value, Position: -1}},
	}
}

// ETag names a version.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// MustMatch refuses an edit of another version than the object is at.
func MustMatch(ctx context.Context, header, noun string, id fmt.Stringer, version int64) error {
	asked, err := IfMatch(ctx, header)
	if err == nil && asked != 0 && asked != version {
		err = domain.Errorf(domain.CodeRevisionMismatch, "%s %s is at version %d, not %d", noun, id, version, asked)
	}
	return err
}

// IfMatch reads the header; 0 means any revision.
func IfMatch(ctx context.Context, header string) (int64, error) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, NewProblem(ctx, http.StatusPreconditionRequired, domain.CodeInvalid,
			`say which revision was edited: If-Match: "3" (its ETag), or * for any`)
	}
	if header == "*" {
		return 0, nil
	}
	text := strings.TrimPrefix(header, "W/")
	if n, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64); err == nil && n > 0 && text == ETag(n) {
		return n, nil
	}
	return 0, domain.Invalid("header.If-Match", `must be a revision in quotes, such as "3", or *`)
}

// IfMatchOrAny is IfMatch where no header is any version.
func IfMatchOrAny(ctx context.Context, header string) (int64, error) {
	if strings.TrimSpace(header) == "" {
		return 0, nil
	}
	return IfMatch(ctx, header)
}
