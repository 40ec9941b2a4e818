// Package outbox has the tests of the SDK's outbox of timers (package timers) on
// real databases: SQLite, MariaDB or MySQL, and PostgreSQL. The SDK's own module must
// not know their drivers.
package outbox
