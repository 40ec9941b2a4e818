package schedule_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/schedule"
)

func ExampleParse() {
	c, err := schedule.Parse("0 0 12 ? * 6#3", schedule.DialectAuto)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Dialect(), c.Next(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)))
	// Output: quartz 2026-03-20 12:00:00 +0000 UTC
}

func ExampleParseError() {
	_, err := schedule.Parse("0 0 25 * * MON", schedule.DialectAuto)
	var pe *schedule.ParseError
	if errors.As(err, &pe) {
		fmt.Println(err)
		fmt.Println(pe.Detail())
	}
	// Output:
	// cron "0 0 25 * * MON": column 5, hour: 25 is outside 0-23
	// hour: 25 is outside 0-23
	//   0 0 25 * * MON
	//       ^^
}

func ExampleCompile() {
	s, err := schedule.Compile(schedule.Spec{
		Kind: schedule.KindCron, Expr: "30 2 * * *", Zone: "America/New_York",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// On 8 March 2026 clocks go from 02:00 to 03:00.
	for _, o := range s.Preview(time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC), 3) {
		fmt.Printf("%s %q\n", o.At.Format(time.RFC3339), o.Mark)
	}
	// Output:
	// 2026-03-07T02:30:00-05:00 ""
	// 2026-03-08T03:00:00-04:00 "gap_end"
	// 2026-03-09T02:30:00-04:00 ""
}

func ExampleExplain() {
	for _, lang := range []string{"en", "zh"} {
		text, _ := schedule.Explain("*/15 9-17 * * MON-FRI", schedule.DialectAuto, lang)
		fmt.Println(text)
	}
	// Output:
	// Every 15 minutes from 09:00 to 17:59, Monday to Friday
	// 每周一至周五，09:00 至 17:59 期间，每 15 分钟一次
}

func ExampleDue() {
	s, _ := schedule.Compile(schedule.Spec{Kind: schedule.KindCron, Expr: "0 * * * *"})
	// All nodes were down from 09:30 to 12:20.
	plan := schedule.Due(s, schedule.DueParams{
		Next:   time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
		Now:    time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC),
		Policy: schedule.MisfireOnceNow,
	})
	for _, f := range plan.Fires {
		fmt.Printf("%s %s %q\n", f.At.Format("15:04"), f.Decision, f.Cause)
	}
	fmt.Println("next", plan.Next.Format("15:04"))
	// Output:
	// 10:00 coalesced ""
	// 11:00 coalesced ""
	// 12:00 run "misfire"
	// next 13:00
}
