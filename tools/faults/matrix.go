package main

// proofID is not of the matrix: the proof that `make proof` runs.
const proofID = "PROOF"

// onMySQL are the rows in CI's selection on MySQL, with fewer injections: the
// engine is the same, and what has to be shown is that this server ends sessions,
// frees locks and comes back as the other one does.
var onMySQL = []string{proofID, "F01", "F02", "F03", "F19"}

// alone are the rows whose verdict is a time, or compares figures taken one after
// the other: they run when no other does.
var alone = []string{"F02", "F36", "F37", "F46"}

// long are the rows that take longest in CI. They begin first, or one of them would
// be alone in the end.
var long = []string{"F07", "F12", "F34", "F38"}

// matrix lists the rows in the order of the fault matrix.
func matrix() []row {
	return []row{
		{proofID, "two admins and two executors, one admin killed for 15 s", false, proof},
		{stopID, "kill, timeout and cover, of handlers that listen and that do not", false, stop},
		{"F01", "SIGKILL one of 3 admins", true, f01},
		{"F02", "processes die at every step: arrow × point × promise", true, f02},
		{"F03", "SIGSTOP an admin, also while it holds row locks", true, f03},
		{"F04", "all admins down, longer than half of the thresholds", false, f04},
		{"F05", "rolling upgrade: nodes of two versions, forth, back and forth", false, f05},
		{"F07", "SIGKILL an executor in the middle of runs", true, f07},
		{"F08", "SIGSTOP an executor for 5 to 60 s", false, f08},
		{"F09", "SIGKILL an executor between the handler's end and the result", true, f09},
		{"F10", "handlers that ignore their cancel, or are deadlocked", false, f10},
		{"F11", "the same executor twice; hundreds of executors flapping at 5 Hz", false, f11},
		{"F12", "isolate an admin from its executors, the database reachable", true, f12},
		{"F13", "blackhole an executor (half-open)", false, f13},
		{"F14", "one-way drop between an executor and all admins, each direction", false, f14},
		{"F15", "30 % loss; 1 Mbit/s; 300 ms delay", false, f15},
		{"F16", "reset after byte N, swept over every message", false, f16},
		{"F17", "recorded sessions said again: word by word, doubled, reordered", false, f17},
		{"F18", "cut an admin from the database, not from its executors", false, f18},
		{"F19", "kill -9 the database server under load", true, f19},
		{"F20", "the primary killed and its replica promoted: semi-synchronous, then without the last second", false, f20},
		{"F21", "cut between COMMIT and OK, both truths", true, f21},
		{"F22", "foreign locks on 10 % of the triggers; ALTER of the jobs table", false, f22},
		{"F23", "database: disk full, read-only, no connections left, 500 ms away", false, f23},
		{"F24", "database clock +300 s, -300 s, +1 day", false, f24},
		{"F25", "admin clocks ±30 s", false, f25},
		{"F26", "60 zones × 20 years against a second cron", false, f26},
		{"F27", "freeze the whole group for 60 s", false, f27},
		{"F28", "the Redis that names due timers: FLUSHALL, killed, 5 s late, wrong values", false, f28},
		{"F29", "the way to a message broker loses requests and answers; messages that nothing takes", false, f29},
		{"F30", "receivers of callbacks and alerts hang, fail, drip a byte a second; 10,000 calls at once", false, f30},
		{"F31", "the disk of an executor's journal is full", true, f31},
		{"F32", "one handler logs 100 MB/s", false, f32},
		{"F33", "one tenant has 20,000 fire times in one second", false, f33},
		{"F34", "edit, pause, delete ±5 ms around the fire instant", true, f34},
		{"F36", "three times what can be done, then a tenth: few slots, a slow database, no executors", false, f36},
		// Not for CI: its verdict is the memory of a moment.
		{"F37", "every frame at its largest and its most frequent, from a valid token", false, f37},
		{"F38", "rows spoiled one by one, and a panic in each worker", true, f38},
		{"F39", "overlapping faults at random, then all healed", false, f39},
		{"F41", "MySQL Group Replication of three: writer killed, frozen, cut off, in the minority; rolling restart", false, f41},
		{"F42", "MariaDB Galera of three: the same", false, f42},
		{"F43", "a tenant moves between two cells; the process that moves it is killed in each of its steps", true, f43},
		{"F44", "kill -9 and stop the database server while callers change timers, jobs and incidents", true, f44},
		{"F45", "the database refuses writes for 40 s while handlers run, then takes them again", false, f45},
		// Not for CI: its verdict is the memory of a moment.
		{"F46", "the largest requests to every operation of the API at once, beside another tenant", false, f46},
	}
}
