package ledger

import "github.com/carillon-sched/carillon/admin/internal/store"

// forgetGaps cuts a job's history off before its last revisions without a gap. The job's
// promises at an earlier time are not known. It reports whether there was such a time.
func forgetGaps(j *store.LedgerJob) bool {
	first := 0
	for i := range j.Revisions {
		if i == 0 && j.Revisions[0].Revision > 1 || i > 0 && j.Revisions[i].Revision != j.Revisions[i-1].Revision+1 {
			first = i
		}
	}
	if len(j.Revisions) == 0 || j.Revisions[first].Revision == 1 {
		return false
	}
	j.Revisions = j.Revisions[first:]
	from := j.Revisions[0].CreatedAt
	for len(j.Events) > 1 && !j.Events[1].At.After(from) {
		j.Events = j.Events[1:]
	}
	if len(j.Events) > 0 && j.Events[0].At.Before(from) {
		j.Events[0].At = from
	}
	if j.RunsFrom.Before(from) {
		j.RunsFrom = from
	}
	return true
}
