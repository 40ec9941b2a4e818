// Package auth keeps handlers from running for those who are not meant to
// start them: a second lock behind the admin's roles, in the hands of the
// application.
//
//	ex.Use(auth.Handler("refund",
//		auth.RequestedBy("key:billing", "alice"),
//		auth.Cause("schedule")))
//
// What the admin says of a run (its cause, and who asked for it) is trusted;
// whoever can change jobs there can make the schedule start a handler.
package auth

import (
	"context"
	"fmt"
	"slices"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Rule says whether a run may go on.
type Rule func(task executor.Task) bool

// Cause allows runs that exist for one of these reasons: schedule, misfire,
// manual, api, retry, backfill, parent.
func Cause(causes ...string) Rule {
	return func(task executor.Task) bool { return slices.Contains(causes, task.Cause) }
}

// RequestedBy allows runs that one of these asked for: a user's name, or "key:"
// and the name of an API key, as the run's page shows it.
func RequestedBy(names ...string) Rule {
	return func(task executor.Task) bool {
		return task.RequestedBy != "" && slices.Contains(names, task.RequestedBy)
	}
}

// All allows runs that all of the rules allow.
func All(rules ...Rule) Rule {
	return func(task executor.Task) bool {
		return !slices.ContainsFunc(rules, func(r Rule) bool { return !r(task) })
	}
}

// Handler refuses runs of the handler called name that none of the rules
// allows. They fail for good, and the handler is not called.
func Handler(name string, rules ...Rule) executor.Interceptor {
	return intercept(func(task executor.Task) bool { return task.Handler != name }, rules)
}

// Every is Handler for all handlers of the executor.
func Every(rules ...Rule) executor.Interceptor {
	return intercept(func(executor.Task) bool { return false }, rules)
}

func intercept(exempt Rule, rules []Rule) executor.Interceptor {
	return func(ctx context.Context, next executor.Next) error {
		task := executor.TaskFrom(ctx)
		if exempt(task) || slices.ContainsFunc(rules, func(r Rule) bool { return r(task) }) {
			return next(ctx)
		}
		return executor.Permanent(fmt.Errorf("%s may not be run here by %s (cause %s)", task.Handler, orNobody(task.RequestedBy), task.Cause))
	}
}

func orNobody(name string) string {
	if name == "" {
		return "nobody in particular"
	}
	return name
}
