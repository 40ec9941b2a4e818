// Package retention answers: which rows go, and when?
//
// Retention deletes what has grown old, in bounded transactions, and what is left of
// deleted tenants, executors, jobs and documents. Rules say how long the runs and logs of a
// tenant or job are kept, and RunPurges are clean-ups that somebody asked for. Rows that
// the engine still needs stay: those of runs that live or linger.
package retention
