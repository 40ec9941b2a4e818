package main

// proofID is not of the matrix: the proof that `make proof` runs.
const proofID = "PROOF"

// matrix lists the rows in the order of the fault matrix.
func matrix() []row {
	return []row{
		{proofID, "two admins and two executors, one admin killed for 15 s", false, proof},
		{"F01", "SIGKILL one of 3 admins", true, f01},
		{"F02", "processes die at every step: arrow × point × promise", true, f02},
		{"F03", "SIGSTOP an admin, also while it holds row locks", true, f03},
		{"F07", "SIGKILL an executor in the middle of runs", true, f07},
		{"F08", "SIGSTOP an executor for 5 to 60 s", true, f08},
		{"F09", "SIGKILL an executor between the handler's end and the result", true, f09},
		{"F19", "kill -9 mariadbd under load", true, f19},
		{"F34", "edit, pause, delete ±5 ms around the fire instant", true, f34},
	}
}
