// Package simulate answers: what would an executor do?
//
// It hands out the very state machine that Run drives, without goroutines,
// clock, disk, network and handlers, so that a simulator can play all of these
// and repeat a run exactly. Applications have no use for it, and it promises no
// stable face: it follows the machine.
package simulate

import (
	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
)

type (
	// Machine is the state of all attempts of one process. Not safe for
	// concurrent use.
	Machine = runner.Core
	// Effect is what an event leads to, Begin a handler to be called.
	Effect = runner.Effect
	Begin  = runner.Begin
	// Link names a session. Its methods are not called: what is to be sent
	// through it comes as an Effect.
	Link = runner.Link
	// Limits are fixed after construction.
	Limits = runner.Limits
	// Key names one attempt, Return is what came of calling its handler.
	Key    = runner.Key
	Return = runner.Return
	// Record is one line of a journal, Life what one process has written,
	// Entry an attempt that something is still owed for.
	Record = journal.Record
	Life   = journal.Life
	Entry  = journal.Entry
)

// KindRetryable is the Return.Kind of a handler that failed.
const KindRetryable = runner.KindRetryable

// Kinds of records.
const (
	Accepted = journal.Accepted
	Granted  = journal.Granted
	Done     = journal.Done
	Settled  = journal.Settled
)

// New returns a Machine that has taken over what earlier processes left.
var New = runner.NewCore

// Replay returns what a journal that survived these lives owes.
var Replay = journal.Replay
