// Package hotset answers which timers are due soon from Redis, so that the planner
// need not search the database for them.
//
//	database ── migrator ──▶ pages of the next slice ─┐
//	                                                  Redis ── DueTimers ──▶ claim (store)
//	timer set or moved ── Put ──▶ its partition's ────┘            ▲              │
//	                              set of late ones                 └ TimersTried ─┘
//
// The timers of a partition rest in the database. Its holder copies the ids of those
// that are due in the next slice of time, page by page; each page is a sorted set of
// its own (score: the fire time in ms), so a slice has as many sets as it has timers
// for. When a slice is written to its end, the partition's watermark moves there.
// Timers that are set or moved into a slice that may have been copied are added to
// one more sorted set of the partition. What claims have tried is removed with the
// next look. All keys expire by themselves soon after their slice.
//
// Redis holds hints and no state. A claim locks the row of each id in the database
// and decides by that (store.ClaimDueTimers); what Redis does not name, the database
// names ahead of its time. So Redis may be flushed, killed, slow, full or wrong:
// nothing is lost, doubled or early. The Set knows how many ids each page must have.
// When one has fewer or more, or after an error, or an answer that takes longer than
// lookTime, all that was copied is forgotten and Redis is left alone for pauseAfter;
// then it is copied again.
package hotset
