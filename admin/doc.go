// Package admin wires the rooms below admin/internal into one node: it
// constructs them, owns the long-lived goroutines, and stops them in the order
// of a trigger's way (docs/dev/architecture.md).
//
// A node is a value: New opens the database, brings its schema up to date,
// enters the node into the cluster and opens the listeners (port 0 works);
// Run serves until its context ends. Tests and the demo start nodes just as
// the server command does.
package admin
