// Package declare answers: which jobs and handlers does the code of an application declare,
// and what becomes of the jobs that are there?
//
// The gateway calls Declare when an instance has registered. The builds of an executor that
// are present are merged (reconcile.go), each declaration is compared with its job
// (declare.go), and the store writes the difference. Sweep does the same when a build has
// left. The rules are in docs/adr/0023.
//
// Promises:
//   - Two versions that run at once do not take turns.
//   - The declarations of a strict build are written together or not at all.
//   - An edit of a person is replaced only if the code owns the job, and is restored after a
//     rollback.
package declare
