// Package jobs lets an application manage the jobs of its executor: create and replace them by
// names of its own, pause, resume, run and delete them, and read what became of their runs. It is
// for jobs that come and go with the application's data, such as a report for each customer.
// Jobs that are part of the program are declared beside their handlers (executor.Job).
//
//	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal"}) // CARILLON_API_KEY
//	…
//	reports := jobs.New(client, "shop")
//	_, err = reports.Put(ctx, "report-77", jobs.Spec{
//		Handler: "send-report", Input: Report{Customer: 77}, Schedule: jobs.Cron("0 8 * * MON", "Europe/Berlin"),
//	})
//	…
//	err = reports.Delete(ctx, "report-77")
//
// # What is promised
//
// Put, Pause, Resume and Delete mean the same when they are repeated: the package repeats a
// request until a node has answered it. Put makes no new revision if nothing differs. Run begins
// one run for each call, also if its request is repeated; with the option Key for each key.
//
// Names are unique in the tenant. A name that a job of another executor has is refused with
// ErrTaken; such a job is never changed.
//
// # Who may
//
// The API key of the client needs the permissions "read", "operate" and "edit", as the role
// manager has them, and is best bound to the executor. A key may have several roles:
//
//	carillon api-key create shop --role caller,timer,manager --executor shop
package jobs
