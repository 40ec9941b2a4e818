// Package direct answers: how does a socket's traffic leave the runtime's
// monitor asleep?
//
// The net package tells the scheduler of each read and write, because a system
// call may block. That wakes the runtime's monitor thread wherever the process
// was idle the moment before, and then it looks around every 20 µs until the
// process is idle again. A server that gets a small message each millisecond or
// so spends a fifth of its CPU time that way (docs/adr/0043). Reads and writes
// of a socket never block: it answers EAGAIN, and the netpoller tells when to
// try again. So the scheduler need not know of them.
package direct
