package doctor

import (
	"fmt"
	"time"
)

// Status is a check's verdict.
type Status string

// The verdicts, from good to bad; Skipped is none.
const (
	OK      Status = "ok"
	Warning Status = "warn" // it works, and a promise or an operator's night is in danger
	Failed  Status = "fail" // a node does not start, or does not do what it is for
	Skipped Status = "skipped"
)

// Result is one thing that a check found.
type Result struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Code names the problem, in snake_case; it is stable, and empty when all is well.
	Code  string `json:"code,omitempty"`
	Found string `json:"found"`
	// Do is what to do about it.
	Do string `json:"do,omitempty"`
}

// Report is what all checks found, in the order of the checks.
type Report struct {
	Results  []Result       `json:"results"`
	Counts   map[Status]int `json:"counts"`
	Duration time.Duration  `json:"-"`
	Millis   int64          `json:"durationMs"`
}

// Passed says what works as it should. Run fills in the name of the check.
func Passed(format string, args ...any) Result {
	return Result{Status: OK, Found: fmt.Sprintf(format, args...)}
}

// Skip says why there was nothing to look at.
func Skip(format string, args ...any) Result {
	return Result{Status: Skipped, Found: fmt.Sprintf(format, args...)}
}

// Warn names a problem that a node works with.
func Warn(code, do, format string, args ...any) Result {
	return Result{Status: Warning, Code: code, Do: do, Found: fmt.Sprintf(format, args...)}
}

// Fail names a problem that a node does not work with.
func Fail(code, do, format string, args ...any) Result {
	return Result{Status: Failed, Code: code, Do: do, Found: fmt.Sprintf(format, args...)}
}
