// Package console answers: what do people and applications see and edit?
//
// Console is store.Console, a struct for each noun; those of access,
// retention and timers have packages of their own. Reads take no locks. An edit
// that changes what runs do (a job's schedule, a limit, a quota) asks the engine
// inside its own transaction.
package console
