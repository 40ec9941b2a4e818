package executor

import (
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// calls is what the options beside the handler say of runs that belong to no
// declared job: calls through package proxy, and callbacks. It has all settings
// of how a run runs, and none of when the job fires and whose it is. Nil: they
// say nothing.
func (h *handler) calls() *proto.JobDeclaration {
	for n, j := range h.jobs {
		if j != h.own {
			continue
		}
		d := gproto.CloneOf(h.declared[n])
		d.Name, d.Description, d.Input, d.Sharding = "", "", nil, nil
		d.Cron, d.Dialect, d.EveryMs, d.DelayMs, d.AtMs, d.InstantsMs = "", "", 0, 0, 0, nil
		d.Zone, d.WindowFrom, d.WindowTo, d.StartAtMs, d.EndAtMs, d.JitterMs = "", "", "", 0, 0, 0
		d.DstGap, d.DstOverlap, d.Calendars, d.CalendarDays = "", "", nil, ""
		d.Misfire, d.MisfireThresholdMs, d.MisfireWindowMs, d.MisfireMaxRuns = "", 0, 0, 0
		d.OwnerEmail, d.Ownership, d.Removal, d.Labels, d.Alert = "", "", "", nil, nil
		if d.SuccessTo != nil {
			d.OnSuccess = needsNewerCall
		}
		if d.FailureTo != nil {
			d.OnFailure = needsNewerCall
		}
		if !j.hasRetries {
			d.MaxAttempts = 0
		}
		if gproto.Size(d) == 0 {
			return nil
		}
		return d
	}
	return nil
}
