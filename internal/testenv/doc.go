// Package testenv answers: which real server does a test talk to?
//
// STYLE is that storage, mail and callbacks are tested on the real thing.
// This package starts those things privately: each on a port of its own on
// 127.0.0.1, with its data in a temporary directory (DefaultDir), never a service
// of the machine. Everything a test started is gone when the test process is gone,
// also after a SIGKILL (guard.go says how).
//
//	Database(tb)       DSN of a fresh, empty database on a shared server
//	PrivateServer(tb)  a server of the test's own, to kill, freeze, restart
//	PrivateCluster(tb) three of them, Galera or Group Replication
//	PostgreSQL(tb)     the same of PostgreSQL, where users have their tables
//	Redis(tb)          a Redis that the process's tests share
//	RabbitMQ(tb)       as well
//	SMTP(tb)           a mail server that records, and refuses by script
//	HTTPSink(tb)       a web server that records, and answers by script
//
// Servers are MariaDB's, or MySQL's when CARILLON_TEST_MYSQL_PRODUCT is mysql;
// build/need.sh fetches either, and Galera. The shared server is the one that the
// environment variable CARILLON_TEST_MYSQL_DSN names; without it one is started
// per test process, at the first call. `make test` starts a single one for all
// packages with tools/withparts. Brokers are started per test process.
//
// Nothing here skips a test: what is missing fails it, with the command that
// installs it. No goroutine of a server's outlives a call, so leak checks in
// the calling package need no exception; the goroutines of SMTP and HTTPSink
// end in the test's cleanup.
//
// It runs on Linux, as root too: it needs signals that report back, and /proc.
// Only tests import this package, and programs of the modules tools and admin/tools.
package testenv
