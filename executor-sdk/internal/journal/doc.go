// Package journal answers one question: what must this process, or the next
// one, still tell the admin?
//
// It is an append-only file of what happened to attempts: accepted, granted,
// done (with the result), settled (the admin has stored the result, nothing is
// owed any more). An attempt starts only after its grant stands in the file, and
// a result is sent only after it does.
//
// Promises:
//
//   - An append is durable when its callback gets nil: it survives kill -9 and
//     a power cut. All appends that wait at the same time share one fsync, and
//     nothing waits for one to get into the file.
//   - Before the fsync it survives kill -9 already: who needs no more than that
//     is called then.
//   - Whoever reads the journal knows whether its end may be missing: when the
//     machine has started again since it was written, or the tail is torn. Then
//     what was accepted counts as granted (Found.Doubted). Where the machine has
//     no name for its start, records have to be durable before anybody acts on
//     them (Journal.Outlasts).
//   - Callbacks of each kind come in the order of the appends.
//   - One process owns a folder at a time, by a file lock that ends with the
//     process. Who holds the lock knows that earlier writers are dead.
//   - A torn tail (the end of a file cut in the middle of a record) is
//     tolerated, cut off and reported; damage elsewhere keeps the file aside.
//   - When the disk refuses a write, the journal says so through Err and tries
//     once a second to begin a new file with all that is still owed.
//
// A folder holds lock and one segment, NNNNNNNN.journal. A segment begins with
// everything that was owed when it was made, so the newest one alone is
// complete; when it has grown to a few times what is owed, the next one
// replaces it.
package journal
