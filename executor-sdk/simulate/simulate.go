// Package simulate answers: what would an executor do?
//
// It hands out the very state machine that Run drives, without goroutines,
// clock, disk, network and handlers, so that a simulator can play all of these
// and repeat a run exactly. Applications have no use for it, and do not inherit
// it: it is a module of its own, below executor-sdk because it hands out what is
// internal there. It promises no stable face: it follows the machine.
package simulate

import (
	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
)

type (
	// Machine is the state of all attempts of one process. Not safe for
	// concurrent use.
	Machine = runner.Core
	// Limits are fixed after construction.
	Limits = runner.Limits
	// Effect is what an event leads to.
	Effect = runner.Effect
	// Begin is a handler to be called.
	Begin = runner.Begin
	// Return is what came of calling a handler.
	Return = runner.Return
	// Key names one attempt.
	Key = runner.Key
	// Link names a session. Its methods are not called: what is to be sent
	// through it comes as an Effect.
	Link = runner.Link
	// Record is one line of a journal.
	Record = journal.Record
	// Life is what one process has written to its journal.
	Life = journal.Life
	// OnMachine names one start of the machine that processes run on.
	OnMachine = journal.Machine
	// Entry is an attempt that something is still owed for.
	Entry = journal.Entry
)

// KindRetryable is the Return.Kind of a handler that failed; KindStopping is what
// becomes of it when the stop of the process interrupted the handler.
const (
	KindRetryable = runner.KindRetryable
	KindStopping  = runner.KindStopping
)

// Done is the Kind of a Record with a result.
const Done = journal.Done

// New returns a Machine that has taken over what earlier processes left.
var New = runner.NewCore

// Replay returns what a journal that survived these lives owes, as read on a
// machine.
var Replay = journal.Replay
