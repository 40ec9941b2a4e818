// Command bench answers: how fast, and how late, and at what price?
//
//	make bench ARGS=--quick                         # on a private MariaDB and on SQLite
//	go run ./admin/tools/bench --database sqlite --scenario steady
//	go run ./admin/tools/bench table REPORT.json --into docs/dev/bench.md
//
// It is no part of carillon: the binary that users run is what it measures.
//
// It measures the product from outside: admin nodes are processes of the binary
// under test, executors are processes of this program, connected over TCP; jobs
// are rows as the API would have written them; what was started is counted from
// what the handlers wrote down (package verify reads it) and compared with the
// tables. Warm-up is not counted. Each rate stands beside its floor, measured in the same run: the very statements that the store
// sends in the lives of so many runs, recorded and sent again to the same
// server, from as many connections as the product uses, with no wire, no
// executor and no logic of ours around them (record.go, replay.go).
//
// Everything listens on loopback, keeps its data in one folder, and is stopped
// by whoever started it, also when the context ends.
package main
