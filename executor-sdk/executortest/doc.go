// Package executortest runs handlers in go test as the admin would: through
// the real pipeline (decoding, interceptors, journal, retries, timeouts, logs,
// steps), in milliseconds, without a network, and by a fake clock.
//
//	func TestClosingADay(t *testing.T) {
//		executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
//			ex := admin.Executor()
//			executor.Handle(ex, "close-day", closeDay,
//				executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"), executor.Retries(2))
//
//			run := admin.Call("close-day", CloseDay{Day: "2026-11-20"})
//			var report Report
//			run.Output(&report)
//
//			admin.Sleep(24 * time.Hour) // a day passes at once
//			require.Len(t, admin.Runs("close-day"), 2)
//		})
//	}
//
// # The clock
//
// The test runs in a bubble of package testing/synctest: time.Now begins at midnight UTC of
// 2000-01-01 (admin.Sleep(time.Until(…)) goes elsewhere), and passes only when everything in the bubble waits, then
// at once. Handlers, retries, timeouts and schedules all live by it. Whatever
// the test uses inside has to be made inside; what waits for a network does not let the time pass.
//
// # The admin
//
// It does what an admin does for one application: it fires declared jobs by their
// schedules, queues runs by their blocking strategy, grants, times out, retries, snoozes,
// stores steps, hands over what an executor that stops has interrupted (StopOne), runs callbacks, and spreads fires over shards with their hooks (Run.Shards).
// It keeps its state in memory. Runs of jobs wait for an instance as long as the test does:
// DispatchTimeout is not looked at.
//
// Schedules fire as with the admin, by the same engine (schedule), and what the admin
// would refuse fails the test. Calendars are those that the test makes (Admin.Calendar): a job
// that comes to fire by another one fails it too, instead of firing at another time than in
// production. Jitter has another length. Fires tells when a job would fire.
//
// It is never down, so nothing misfires. Of several instances it takes the one that had the
// fewest runs: routing, priorities and limits are not looked at, since they
// are about a fleet and not about a handler. A job with RequireLabels fails the test
// when its instances have different labels.
package executortest
