package db

import "slices"

// sessionVariable is a variable of a MySQL session that changes the result of a
// statement. A new session takes it from the server, where an operator may have
// changed it.
type sessionVariable struct {
	name string
	set  string // SQL: the value, which a SELECT shows without its quotes
}

// sessionVariables are set for each connection and compared by TrySession. MySQL 8
// and MariaDB know all of them, and a user may set them without a privilege. The
// isolation level, read-only transactions and the character set have statements of
// their own.
//
// Not here are variables that end a statement with an error (max_statement_time,
// max_execution_time), that change only the plan (optimizer_switch), or that serve
// functions that the store does not call (group_concat_max_len).
var sessionVariables = []sessionVariable{
	{"autocommit", "1"}, // off: single statements are never stored
	{"completion_type", "'NO_CHAIN'"},
	{"default_storage_engine", "'InnoDB'"}, // of goose's own table
	{"foreign_key_checks", "1"},            // off, with unique_checks: MariaDB fills an empty table without undo records
	{"innodb_lock_wait_timeout", "2"},
	{"max_sort_length", "1024"}, // less: pages by name leave rows out
	{"sql_auto_is_null", "0"},   // on: id IS NULL finds the last row inserted
	{"sql_big_selects", "1"},    // off: max_join_size refuses joins
	{"sql_mode", "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"},
	{"sql_safe_updates", "0"}, // on: updates and deletions without a key or LIMIT are refused
	{"sql_select_limit", "18446744073709551615"},
	{"time_zone", "'+00:00'"},
	{"unique_checks", "1"},
}

// sessionWants are the values of the variables of a connection that is set up. The
// last two have other names on older servers of MariaDB.
func sessionWants() []sessionVariable {
	return slices.Concat(sessionVariables, []sessionVariable{
		{"character_set_client", "utf8mb4"}, {"character_set_connection", "utf8mb4"}, {"character_set_results", "utf8mb4"},
		{"collation_connection", "utf8mb4_bin"},
		{"transaction_isolation", "READ-COMMITTED"}, {"transaction_read_only", "0"},
	})
}
