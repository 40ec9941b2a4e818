package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// MaxBody bounds a request's body, in bytes, unless its operation says otherwise.
const MaxBody = 1 << 20

// Codes that only HTTP has.
const (
	codeBodyTooLarge  domain.Code = "body_too_large"
	codeMalformedJSON domain.Code = "malformed_json"
)

// Problem is every error answer (RFC 9457).
type Problem struct {
	Type     string        `json:"type" doc:"urn:carillon:problem: and the code"`
	Title    string        `json:"title" doc:"The HTTP status in words"`
	Status   int           `json:"status" doc:"The HTTP status"`
	Detail   string        `json:"detail" doc:"What is wrong, for people"`
	Code     string        `json:"code" doc:"What is wrong, for machines; never changes its meaning" enum:"unauthenticated,token_expired,permission_denied,not_found,conflict,in_use,revision_mismatch,count_mismatch,validation_failed,invalid_cron,unknown_handler,unfit_input,owned_by_code,policy_refused,quota_exceeded,idempotency_key_reused,body_too_large,malformed_json,rate_limited,too_many_waiting,executor_offline,executor_disabled,tenant_disabled,tenant_moving,tenant_elsewhere,maintenance,wait_timed_out,already_finished,timer_exists,timer_started,unavailable,internal"`
	Instance string        `json:"instance" doc:"The request id, also in X-Request-Id"`
	Errors   []ProblemItem `json:"errors,omitempty" doc:"Every wrong field"`
	Quota    *QuotaExcess  `json:"quota,omitempty" doc:"With quota_exceeded: which quota, and how far it went"`
	Cell     *CellAddress  `json:"cell,omitempty" doc:"With tenant_elsewhere: where the tenant lives; the same request with the same API key is answered there"`
	Count    *int64        `json:"count,omitempty" doc:"With count_mismatch: how many items there are"`
	// Current is what a revision is of; Server.DescribeCurrent tells its type.
	Current any `json:"current,omitempty"`

	headers http.Header
}

// ProblemItem points at one wrong value.
type ProblemItem struct {
	Location string `json:"location" example:"body.schedule.expr" doc:"Where it is: body., query., path. or header. and the path of the value"`
	Message  string `json:"message" doc:"What is wrong with it, for people"`
	Value    any    `json:"value,omitempty" doc:"The value, if it is short and no secret"`
	Position *int   `json:"position,omitempty" doc:"Byte offset of the fault inside a cron expression or the JSON text"`
	Length   *int   `json:"length,omitempty" doc:"Bytes to mark from position"`
	Hint     string `json:"hint,omitempty" doc:"What to write instead"`
	Pointer  string `json:"pointer,omitempty" doc:"JSON pointer into the input, with unfit_input"`
}

// QuotaExcess is what a quota did not allow.
type QuotaExcess struct {
	Kind  string `json:"kind" enum:"jobs,fires_per_minute,executors,instances,users,api_keys,timers,stored_bytes,api_calls_per_second" doc:"What there may be only so many of"`
	Limit int64  `json:"limit" doc:"How many there may be"`
	Used  int64  `json:"used" doc:"How many there are"`
	Asked int64  `json:"asked" doc:"How many more were needed"`
}

// CellAddress is where a cell answers.
type CellAddress struct {
	Name string `json:"name" doc:"The cell"`
	URL  string `json:"url" doc:"Of its API and console"`
}

func quotaExcessOf(q *domain.QuotaExcess) *QuotaExcess {
	if q == nil {
		return nil
	}
	return &QuotaExcess{Kind: string(q.Kind), Limit: q.Max, Used: q.Used, Asked: q.Asked}
}

// Error, GetStatus, ContentType and GetHeaders make it huma's error type.
func (p *Problem) Error() string             { return p.Detail }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) ContentType(string) string { return "application/problem+json" }
func (p *Problem) GetHeaders() http.Header   { return p.headers }

// DescribeCurrent says in the document what Problem.Current is, of which type.
func (s *Server) DescribeCurrent(of reflect.Type, text string) {
	schemas := s.huma.OpenAPI().Components.Schemas
	schema := schemas.SchemaFromRef(schemas.Schema(reflect.TypeFor[Problem](), true, "").Ref)
	schema.Properties["current"] = &huma.Schema{Ref: schemas.Schema(of, true, "").Ref, Description: text}
}

// statuses is the one table from codes to HTTP. Codes that stay inside the
// admin become one that the outside knows.
var statuses = map[domain.Code]struct {
	status int
	code   domain.Code
}{
	domain.CodeUnauthenticated:  {http.StatusUnauthorized, domain.CodeUnauthenticated},
	domain.CodeTokenExpired:     {http.StatusUnauthorized, domain.CodeTokenExpired},
	domain.CodeDenied:           {http.StatusForbidden, domain.CodeDenied},
	domain.CodeNotFound:         {http.StatusNotFound, domain.CodeNotFound},
	domain.CodeConflict:         {http.StatusConflict, domain.CodeConflict},
	domain.CodeInUse:            {http.StatusConflict, domain.CodeInUse},
	domain.CodeMaintenance:      {http.StatusConflict, domain.CodeMaintenance},
	domain.CodeAlreadyFinished:  {http.StatusConflict, domain.CodeAlreadyFinished},
	domain.CodeTimerExists:      {http.StatusConflict, domain.CodeTimerExists},
	domain.CodeTimerStarted:     {http.StatusConflict, domain.CodeTimerStarted},
	domain.CodeIllegalMove:      {http.StatusConflict, domain.CodeConflict},
	domain.CodeStaleFence:       {http.StatusConflict, domain.CodeConflict},
	domain.CodeStaleTerm:        {http.StatusConflict, domain.CodeConflict},
	domain.CodeClockJump:        {http.StatusServiceUnavailable, domain.CodeUnavailable},
	domain.CodeRolledBack:       {http.StatusServiceUnavailable, domain.CodeUnavailable},
	domain.CodeExecutorOffline:  {http.StatusConflict, domain.CodeExecutorOffline},
	domain.CodeTenantDisabled:   {http.StatusForbidden, domain.CodeTenantDisabled},
	domain.CodeTenantMoving:     {http.StatusServiceUnavailable, domain.CodeTenantMoving},
	domain.CodeTenantElsewhere:  {http.StatusMisdirectedRequest, domain.CodeTenantElsewhere},
	domain.CodeExecutorDisabled: {http.StatusConflict, domain.CodeExecutorDisabled},
	domain.CodeRevisionMismatch: {http.StatusPreconditionFailed, domain.CodeRevisionMismatch},
	domain.CodeCountMismatch:    {http.StatusConflict, domain.CodeCountMismatch},
	domain.CodeInvalid:          {http.StatusUnprocessableEntity, domain.CodeInvalid},
	domain.CodeInvalidCron:      {http.StatusUnprocessableEntity, domain.CodeInvalidCron},
	domain.CodeUnknownHandler:   {http.StatusUnprocessableEntity, domain.CodeUnknownHandler},
	domain.CodeUnfitInput:       {http.StatusUnprocessableEntity, domain.CodeUnfitInput},
	domain.CodeKeyReused:        {http.StatusUnprocessableEntity, domain.CodeKeyReused},
	domain.CodeQuotaExceeded:    {http.StatusConflict, domain.CodeQuotaExceeded},
	domain.CodePolicyRefused:    {http.StatusForbidden, domain.CodePolicyRefused},
	domain.CodeOwnedByCode:      {http.StatusConflict, domain.CodeOwnedByCode},
	domain.CodeWaitTimedOut:     {http.StatusAccepted, domain.CodeWaitTimedOut},
	domain.CodeRateLimited:      {http.StatusTooManyRequests, domain.CodeRateLimited},
	domain.CodeTooManyWaiting:   {http.StatusTooManyRequests, domain.CodeTooManyWaiting},
	domain.CodeUnavailable:      {http.StatusServiceUnavailable, domain.CodeUnavailable},
	codeBodyTooLarge:            {http.StatusRequestEntityTooLarge, codeBodyTooLarge},
	codeMalformedJSON:           {http.StatusBadRequest, codeMalformedJSON},
}

func errBodyTooLarge(most int64) error {
	return domain.Errorf(codeBodyTooLarge, "the body is longer than %d bytes", most)
}

// Problem turns any error into an answer. What the user can do nothing about
// is logged and hidden.
func (s *Server) Problem(ctx context.Context, err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		ready.Instance = RequestOf(ctx).ID
		return ready
	}
	entry, known := statuses[domain.CodeOf(err)]
	if !known {
		return s.internal(ctx, err)
	}
	p := NewProblem(ctx, entry.status, entry.code, err.Error())
	var de *domain.Error
	if errors.As(err, &de) {
		p.Detail = de.Message
		p.Quota = quotaExcessOf(de.Quota)
		if de.Cell != nil {
			p.Cell = &CellAddress{de.Cell.Name, de.Cell.URL}
		}
		if de.RetryAfter > 0 {
			p.headers.Set("Retry-After", strconv.Itoa(int(math.Ceil(de.RetryAfter.Seconds()))))
		}
		for _, f := range de.Fields {
			p.Errors = append(p.Errors, itemOf(f))
		}
	}
	var limited *auth.LimitedError
	switch {
	case errors.As(err, &limited):
		p.headers.Set("Retry-After", strconv.Itoa(int(math.Ceil(limited.After.Seconds()))))
	case entry.code == domain.CodeUnavailable:
		s.log.Warn("request not served", "request_id", p.Instance, "err", err)
		switch {
		case errors.Is(err, domain.ErrDiskFull):
			p.Detail = "the disk of the database is full; try again when an operator has made room"
		case errors.Is(err, domain.ErrContended):
			p.Detail = "others change the same rows all the time; try again in a moment"
		case de == nil || errors.Unwrap(de) != nil: // the database's words are not for everybody
			p.Detail = "the database does not answer; try again in a moment"
		}
		p.headers.Set("Retry-After", "1")
	case entry.status == http.StatusUnauthorized:
		p.headers.Set("WWW-Authenticate", `Bearer realm="carillon"`)
	}
	return p
}

// OurFault reports whether an error is none of the request: the same one may
// succeed later.
func OurFault(err error) bool {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready.Status >= http.StatusInternalServerError
	}
	entry, known := statuses[domain.CodeOf(err)]
	return !known || entry.status >= http.StatusInternalServerError
}

func (s *Server) internal(ctx context.Context, err error) *Problem {
	if ctx.Err() != nil {
		// The client has gone; nobody reads this.
		return NewProblem(ctx, 499, domain.CodeInternal, "the request was cancelled")
	}
	p := NewProblem(ctx, http.StatusInternalServerError, domain.CodeInternal,
		"something went wrong; the server's log has the details under this request id")
	s.log.Error("request failed", "request_id", p.Instance, "err", err)
	return p
}

// NewProblem is an error of this status and code; detail is for people.
func NewProblem(ctx context.Context, status int, code domain.Code, detail string) *Problem {
	return &Problem{
		Type: "urn:carillon:problem:" + string(code), Title: http.StatusText(status), Status: status,
		Detail: detail, Code: string(code), Instance: RequestOf(ctx).ID, headers: http.Header{},
	}
}

func itemOf(f domain.FieldError) ProblemItem {
	item := ProblemItem{Location: f.Location, Message: f.Message, Value: shownValue(f.Location, f.Value), Hint: f.Hint, Pointer: f.Pointer}
	if f.Position >= 0 && f.Length > 0 {
		item.Position, item.Length = &f.Position, &f.Length
	}
	return item
}

// WriteProblem answers outside huma.
func (s *Server) WriteProblem(c *gin.Context, p *Problem) {
	for name, values := range p.headers {
		for _, v := range values {
			c.Writer.Header().Add(name, v)
		}
	}
	if p.Status == http.StatusRequestEntityTooLarge {
		c.Header("Connection", "close") // the rest of the body is not worth reading
	}
	c.Header("Content-Type", "application/problem+json")
	c.Header("Cache-Control", "no-store")
	c.Status(p.Status)
	enc := json.NewEncoder(c.Writer)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		s.log.Debug("answer not written", "request_id", p.Instance, "err", err)
	}
	c.Abort()
}

// huma's own errors (validation, JSON, size) come through these two hooks,
// which are variables of that package. No other package of ours uses it.
func init() {
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return foreignProblem(ctx.Context(), status, msg, errs)
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return foreignProblem(context.Background(), status, msg, errs)
	}
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
}

func foreignProblem(ctx context.Context, status int, msg string, errs []error) *Problem {
	var details []*huma.ErrorDetail
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			details = append(details, d)
		} else if err != nil {
			details = append(details, &huma.ErrorDetail{Message: err.Error()})
		}
	}
	switch {
	case status == http.StatusBadRequest:
		return NewProblem(ctx, status, codeMalformedJSON, msg)
	case status >= 500:
		return NewProblem(ctx, status, domain.CodeInternal, "something went wrong")
	}
	p := NewProblem(ctx, status, domain.CodeInvalid, msg)
	for _, d := range details {
		d = misfitOf("body", d)
		p.Errors = append(p.Errors, ProblemItem{Location: d.Location, Message: insteadOf(d.Message, d.Location, d.Value), Value: shownValue(d.Location, d.Value), Hint: hintOf(d)})
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
	}
	return p
}

// hintOf gives the right form of an instant, lists members that are known, and asks which of the values that huma
// lists in its message was meant.
func hintOf(d *huma.ErrorDetail) string {
	if unknown, is := d.Value.(unknownMember); is {
		return unknown.hint()
	}
	value, isText := d.Value.(string)
	if isText && d.Message == validation.MsgExpectedRFC3339DateTime {
		return instantHint(value)
	}
	before, after, _ := strings.Cut(validation.MsgExpectedOneOf, "%s")
	list, isEnum := strings.CutPrefix(d.Message, before)
	if !isText || !isEnum || value == "" || len(value) > maxShown {
		return ""
	}
	return spelling.Hint(value, strings.Split(strings.TrimSuffix(list, after), ", "))
}

// malformed says where the JSON text is broken.
func malformed(ctx context.Context, text []byte, err error) *Problem {
	p := NewProblem(ctx, http.StatusBadRequest, codeMalformedJSON, err.Error())
	item := ProblemItem{Location: "body", Message: err.Error()}
	var ours *bodyError
	var syntax *json.SyntaxError
	if errors.As(err, &ours) {
		item.Location, item.Message, item.Hint = ours.location, ours.message, ours.hint
		item.Position = &ours.offset
		p.Detail = position(text, ours.offset) + ": " + ours.Error()
	} else if errors.As(err, &syntax) {
		at := max(int(syntax.Offset)-1, 0)
		item.Position = &at
		p.Detail = "the body is not JSON: " + position(text, at) + ": " + syntax.Error()
	}
	p.Errors = []ProblemItem{item}
	return p
}

// invalidBody names the wrong values of a body.
func invalidBody(ctx context.Context, wrong []*huma.ErrorDetail) *Problem {
	errs := make([]error, len(wrong))
	for i, d := range wrong {
		errs[i] = d
	}
	return foreignProblem(ctx, http.StatusUnprocessableEntity, "the body is wrong", errs)
}

// maxShown bounds the values that errors repeat, in bytes.
const maxShown = 200

// shownValue returns the value if it may be repeated in an answer: a short
// scalar that is no secret.
func shownValue(location string, v any) any {
	lower := strings.ToLower(location)
	for _, word := range []string{"password", "secret", "clientkey", "token", "cookie", "authorization", "body.current", "body.new"} {
		if strings.Contains(lower, word) {
			return nil
		}
	}
	switch v := v.(type) {
	case bool, int, int64, float64:
		return v
	case string:
		if location == "body" || len(v) > maxShown {
			return nil
		}
		return v
	case fmt.Stringer:
		return v.String()
	default:
		return nil
	}
}
