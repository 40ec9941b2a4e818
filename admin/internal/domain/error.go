package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Code tells machines what went wrong. Codes are part of the API and of the
// logs: they never change their meaning.
type Code string

const (
	CodeInternal         Code = "internal"
	CodeNotFound         Code = "not_found"
	CodeConflict         Code = "conflict"
	CodeRevisionMismatch Code = "revision_mismatch"
	// CodeCountMismatch: an action on many items would have had another number of them.
	CodeCountMismatch Code = "count_mismatch"
	// CodeInUse: what is to be deleted has something that would be left behind.
	CodeInUse          Code = "in_use"
	CodeInvalid        Code = "validation_failed"
	CodeInvalidCron    Code = "invalid_cron"
	CodeUnknownHandler Code = "unknown_handler"
	// CodeUnfitInput: a run's input does not fit its handler's schema.
	CodeUnfitInput Code = "unfit_input"
	// CodeOwnedByCode: what is to be changed belongs to the application's code.
	CodeOwnedByCode Code = "owned_by_code"
	// CodeEdited: what code declares is not applied, because the job was edited or
	// deleted in the console and is the console's since. Only notices and refused
	// declarations have it.
	CodeEdited Code = "edited_in_console"
	// CodeKeyReused: an Idempotency-Key came with another request before.
	CodeKeyReused Code = "idempotency_key_reused"
	// CodeTimerExists: a timer of this key is there, and is to be neither kept nor
	// replaced.
	CodeTimerExists Code = "timer_exists"
	// CodeTimerStarted: the timer's run has started and has not ended.
	CodeTimerStarted Code = "timer_started"
	// CodeQuotaExceeded: the tenant has as much of it as it may have.
	CodeQuotaExceeded Code = "quota_exceeded"
	// CodePolicyRefused: the tenant's policy does not allow it, to nobody.
	CodePolicyRefused   Code = "policy_refused"
	CodeUnauthenticated Code = "unauthenticated"
	CodeTokenExpired    Code = "token_expired"
	CodeDenied          Code = "permission_denied"
	CodeRateLimited     Code = "rate_limited"
	// CodeTooManyWaiting: too many requests of the caller wait or stream.
	CodeTooManyWaiting  Code = "too_many_waiting"
	CodeExecutorOffline Code = "executor_offline"
	// CodeTenantDisabled: a platform administrator has disabled the tenant.
	CodeTenantDisabled Code = "tenant_disabled"
	// CodeTenantMoving: the tenant is on its way to another cell.
	CodeTenantMoving Code = "tenant_moving"
	// CodeTenantElsewhere: the tenant lives in another cell (Error.Cell).
	CodeTenantElsewhere Code = "tenant_elsewhere"
	// CodeExecutorDisabled: an administrator has disabled the executor.
	CodeExecutorDisabled Code = "executor_disabled"
	// CodeMaintenance: nothing is to start now.
	CodeMaintenance     Code = "maintenance"
	CodeAlreadyFinished Code = "already_finished"
	CodeWaitTimedOut    Code = "wait_timed_out"
	CodeUnavailable     Code = "unavailable"
	// CodeIllegalMove: the execution is not in a state from which this move
	// is allowed, or the mover lost a race. Callers inside the admin expect it.
	CodeIllegalMove Code = "illegal_move"
	// CodeStaleFence: the sender was overtaken by a newer attempt.
	CodeStaleFence Code = "stale_fence"
	// CodeStaleTerm: the caller does not hold the partition any more. Callers
	// inside the admin expect it.
	CodeStaleTerm Code = "stale_term"
	// CodeClockJump: the database's clock says more than is believed of it.
	CodeClockJump Code = "clock_jump"
	// CodeRolledBack: the database has lost what it had committed, and nothing
	// is started until an operator has decided.
	CodeRolledBack Code = "db_rollback"
	// CodeBadCertificate: an executor's certificate is not one of ours, or over.
	CodeBadCertificate Code = "bad_certificate"
	// CodeInstanceDenied: an administrator keeps this process or certificate out.
	CodeInstanceDenied Code = "denied"
)

// Error is the one error type that crosses rooms. Anything else is a fault of
// the system and is shown to users as "internal".
type Error struct {
	Code    Code
	Message string // one sentence for people: what, where, what to do
	Fields  []FieldError
	Quota   *QuotaExcess // with CodeQuotaExceeded
	Cell    *Cell        // with CodeTenantElsewhere
	// RetryAfter is when the same may succeed; 0 = not said.
	RetryAfter time.Duration
	cause      error
}

// FieldError points at one wrong value of a request.
type FieldError struct {
	Location string // path into the request, for example "body.schedule.expr"
	Message  string
	Value    any
	Position int // byte offset inside a cron expression; -1 when there is none
	Length   int
	Hint     string
	Pointer  string // RFC 6901, into the input of a job; empty = none
}

// Errorf makes an Error; %w arguments become its cause, each of them.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	cause := errors.Unwrap(wrapped)
	if _, several := wrapped.(interface{ Unwrap() []error }); several {
		cause = wrapped
	}
	return &Error{Code: code, Message: wrapped.Error(), cause: cause}
}

// ErrDiskFull is in an error with CodeUnavailable when the database has no room left.
var ErrDiskFull = errors.New("the disk of the database is full")

// ErrContended is in an error with CodeUnavailable when other transactions had the rows
// each time.
var ErrContended = errors.New("others change the same rows all the time")

// Invalid makes a CodeInvalid error for one field.
func Invalid(location, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{
		Code: CodeInvalid, Message: location + ": " + message,
		Fields: []FieldError{{Location: location, Message: message, Position: -1}},
	}
}

// Misfit is Invalid for JSON that does not fit the type of ours that it is read into. at is the
// location of the whole.
func Misfit(at string, err error) *Error {
	wrong, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		return Invalid(at, "cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if wrong.Field != "" {
		at += "." + wrong.Field
	}
	must := "something else"
	switch wrong.Type.Kind() {
	case reflect.String:
		must = "a text"
	case reflect.Bool:
		must = "true or false"
	case reflect.Slice, reflect.Array:
		must = "a list"
	case reflect.Map, reflect.Struct:
		must = "an object with fields"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		must = "a whole number that is not too large"
	case reflect.Float32, reflect.Float64:
		must = "a number that is not too large"
	}
	found := strings.TrimPrefix(wrong.Value, "number ")
	for name, plain := range map[string]string{"string": "a text", "object": "an object", "array": "a list", "bool": "true or false", "number": "a number"} {
		if found == name {
			found = plain
		}
	}
	return Invalid(at, "must be %s, not %s", must, found)
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first Error in err's chain, CodeInternal for
// any other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
