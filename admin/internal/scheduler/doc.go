// Package scheduler answers: when?
//
// It is the first step of a trigger's way. The planner (planner.go) claims due
// trigger rows a little ahead of time and turns them into executions; the
// timer (timer.go) keeps those of the near future in memory and hands them to
// dispatch at their millisecond, never early. What the timer holds is only a
// copy: if the process dies, any node finds the rows by their WakeAt.
//
// All instants are compared with the database's clock (clock.go), so that
// clocks of admin nodes may differ without anybody noticing. When it leaps,
// firing is held until it is clear who is right (clockleap.go).
package scheduler
