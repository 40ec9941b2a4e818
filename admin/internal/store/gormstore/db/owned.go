package db

import "fmt"

// OwnedTable is a table of an add-on with rows of tenants, by the column tenant_id. Retention and
// moves of tenants to other cells treat it by what is said here.
type OwnedTable struct {
	Name string
	// Key is its primary key, an id that is made by time. Empty: its primary key begins with
	// the tenant.
	Key string
	// Children are tables without a tenant. Their Column has a Key of this table.
	Children []string
	Column   string
	// Secret: it holds sealed secrets, which go at once when a tenant is deleted.
	Secret bool
	// Late: a move copies it only while the tenant starts nothing, because a node of the
	// target would act upon its rows, or because they change all the time.
	Late bool
	// Wake is the column of the time at which a node acts upon a row; empty: none does. Only
	// says which rows that concerns.
	Wake string
	Only Equal
	// Claimed is the column that is not empty while a node acts upon a row of Only; empty: there is
	// none. A move waits for such rows, and says Busy of their number.
	Claimed, Busy string
	// Old says which rows are deleted by their age. nil: none is.
	Old *Old
}

// Equal selects rows by the number in a column. Without a column it selects all.
type Equal struct {
	Column string
	Value  int64
}

// And is the condition behind others.
func (e Equal) And() string {
	if e.Column == "" {
		return ""
	}
	return fmt.Sprintf(" AND %s = %d", e.Column, e.Value)
}

// Old selects rows for deletion, beside the age of their id.
type Old struct {
	// Where is a condition; empty: there is none.
	Where string
	// Ends is the column of a time that has to be as old; empty: there is none.
	Ends string
}
