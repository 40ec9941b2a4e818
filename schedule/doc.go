// Package schedule answers one question: when does a schedule fire?
//
// The preview, the UI, the command line and the engine of the server ask it here,
// and so does executortest for tests of applications: what is shown and tested
// is what happens. Everything is a pure function of its arguments: no clock, no
// database, no goroutine, and no import of another room. All types are immutable
// after construction and safe for concurrent use.
//
//	expression ── Parse ──▶ Cron ─┐
//	                              ├── Compile ──▶ Schedule ── Next, NextN, Prev, Preview
//	Spec (kind, zone, validity) ──┘                   │
//	                                                  └────── Due: what to do about fires
//	                                                          that came, or come soon
//
// # Dialects
//
// An expression is read in one of three dialects:
//
//	standard   5 fields           minute hour day-of-month month day-of-week
//	seconds    6 fields    second minute hour day-of-month month day-of-week
//	quartz     6 or 7      second minute hour day-of-month month day-of-week [year]
//
// All have *, lists (1,5), ranges (1-5), steps (*/5, 10-40/5, and 5/10 for
// "from 5 to the end"), English three-letter names in any case, and ranges over
// the end of a field (22-2, FRI-MON). standard and seconds also read
// descriptors: @yearly @annually @monthly @weekly @daily @midnight @hourly and
// "@every 1h30m". Of standard, what the parser of robfig/cron reads to the same
// meaning is read by it, the rest by ours (docs/adr/0065).
//
// In standard and seconds, days follow crontab(5): when both day fields are
// restricted, either of them is enough ("0 0 13 * 5" is every 13th and every
// Friday). A field that begins with * does not count as restricted, so that
// "0 0 */2 * 1" is every Monday on an odd day.
//
// quartz is the language of Quartz 2.3.2, checked against it: exactly one day
// field is ?; day of month also has L (last day), L-3, LW (last weekday),
// L-3W and 15W (Monday-Friday nearest to the 15th, in the same month); day of
// week also has L (Saturday), 6L (last Friday) and 6#3 (third Friday). Two
// oddities of Quartz are kept, with a warning, because jobs that come from it
// must fire as before: a step after a name is ignored (MAR/3 is MAR), and a
// list with W or # counts only its first day. Text that Quartz overlooks
// silently (an eighth field, "2-6#3", "MONDAY", a step of 0) is an error here.
// Years are 1970-2099.
//
// DialectAuto goes by shape: 5 fields are standard, 7 are quartz, and 6 are
// quartz if there is a ?, a #, or an L or W outside a name, otherwise seconds.
// Real Quartz expressions always contain a ?, so none of them is misread.
//
// # Day numbers
//
// The same number means two days: in standard and seconds 0 and 7 are Sunday
// and 1 is Monday; in quartz 1 is Sunday and 7 is Saturday. "0 0 9 * * 2" is
// Tuesday, "0 0 9 ? * 2" is Monday. Therefore a stored job names its dialect:
// Cron.Dialect returns the one that was resolved, and later edits of the
// expression are read in that one. Names (MON) mean the same everywhere.
// WarnDayNumbers tells when auto met a number.
//
// # Clock changes
//
// Wall-clock rules meet times which do not exist (a gap, when clocks go
// forward) and times which exist twice (an overlap, when they go back). What
// happens depends on the rule:
//
//   - A rule that fires in every hour of the day (hour field *, 0-23, */1) goes
//     by elapsed time: nothing is added for the hour that is missing, and the
//     hour that comes twice is served twice. "0 * * * *" keeps firing every
//     60 minutes. The policies do not change it.
//   - A rule whose minutes repeat through the hour (*, */15, 5/20) in certain
//     hours serves both passes of an overlap likewise; in a gap it counts as
//     fixed times.
//   - All other rules name fixed times, and the policies decide. In a gap,
//     GapRunAtEnd (default) fires once at the first instant after it, however
//     many fixed times it swallowed, and GapSkip fires for none of them. In an
//     overlap, OverlapOnce (default) fires in the first pass only, and
//     OverlapBoth in both.
//
// With the defaults, a daily job runs once on every day. The gap's end belongs
// to the day and date of the missing time: "30 2 8 3 *" fires at 03:00 on
// 8 March. No instant is ever returned twice, and each Next is strictly later
// than its argument.
//
// Fixed rates, @every, and the fires inside a daily window go by elapsed time.
//
// # Precision
//
// Cron fires at whole seconds; all other kinds at whole milliseconds, which is
// what the database stores. Instants lie between the years 1970 and 9999.
//
// Zones come from the tz database of the system and, where there is none, from
// the copy in the binary. Nodes of one installation should have the same one.
package schedule
