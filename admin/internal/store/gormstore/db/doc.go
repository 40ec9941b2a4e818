// Package db answers: how is one database spoken to, MySQL or SQLite?
//
// It has the connections, the transactions and their repetition, the estimate of
// the database's clock, the migrations, and what a process knows of the
// database's history. What differs between the products stands behind Dialect.
// Tables are described by Table, which writes and reads their rows in few
// statements; which tables there are, the packages above say.
package db
