// Package failpoint answers one question: what if the process died, or stood
// still, exactly here?
//
// Server and SDK call Hit at the points that decide about promises: before and
// after each commit, fsync and send. Without the build tag "failpoints" Hit is
// empty and the calls compile to nothing; a release holds neither the names nor
// this package's code (internal/deptest and tools/faults/crashpoint check it).
//
// With the tag, the environment says what happens at which point:
//
//	CARILLON_FAILPOINTS="grant-offers.after-commit=exit"
//	CARILLON_FAILPOINTS="send-offers.after=exit@3,journal-done.before-fsync=pause(500ms)"
//	CARILLON_FAILPOINTS=@/tmp/points
//
// exit ends the process at once with ExitCode, as SIGKILL would: nothing is
// flushed, no deferred function runs. pause lets the goroutine stand still,
// panic lets it panic.
// @n means the n-th time only; without it pause acts every time. With a file the
// setting is read from it at every hit, so that a test arms points in processes
// that run; it acts once: whoever comes first, of all processes with this file,
// renames it to FILE.done, and FILE.next, if there is one, to FILE. A setting that cannot be understood ends the process.
//
// The package lies beside the frames because that is the only module that
// server and SDK share; it is no part of the wire. docs/dev/failpoints.md lists the
// points.
package failpoint

// ExitCode is how a process ends that exit has stopped.
const ExitCode = 86
