// Package tenantmove answers: how does a tenant come from one database into another
// one, while both serve, and nothing of it runs twice or is lost?
//
// A Move has both databases open. It copies what has settled while the tenant goes on;
// then the tenant starts nothing (maintenance), and its runs end; then it is fenced in
// the source, the rest is copied, all is compared, and the source says that it lives
// elsewhere. Only then does the target take it up (docs/adr/0088).
//
// Who may start something of the tenant is decided by one row in each database:
//
//	tenants.state   source     target
//	                enabled    -, moving     the source
//	                moving     moving        nobody: to be gone on with, or ended (Abort)
//	                moved      moving        nobody: to be gone on with
//	                moved      enabled       the target
//
// Every step can be done again: a Move that ended anywhere is gone on with by the same
// call. Rows are compared before they are written, so that what was copied is not
// copied twice, and the last comparison, which finds nothing, is the proof that both
// have the same.
//
// The fence is in the rows, and does not rely on what nodes have heard: a trigger
// belongs to nobody (its tenant_id is negative) and is due in the far future, as is all
// else that a clock wakes, and runs have another version than any node remembers. A
// transaction that began before holds the locks of these rows, and is waited for; one
// that comes later, of a node that was frozen, finds no trigger of the tenant, or a run
// that has changed.
package tenantmove
