package bulk

import (
	"maps"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// change is what is to be done with a job in the transaction of its batch. Nothing is set for
// one that needs no change.
type change struct {
	state  *store.SetJobStateParams
	update *store.UpdateJobParams
}

// decide says what becomes of a job. Either there is a change or an answer.
func decide(o *Operation, j *domain.Job) (change, Item) {
	switch o.Action {
	case Pause:
		if j.State == domain.JobPaused && !byMachine(j) {
			return change{}, skipped(skipPaused, "it is paused already"+by(j)+"; that pause stays")
		}
		return o.toState(j, domain.JobPaused), Item{}
	case Resume:
		return decideResume(o, j)
	case Delete:
		if j.Declared.LocksConsole() {
			return change{}, ownedByCode(j, "remove the declaration there, or pause the job")
		}
		return o.toState(j, domain.JobDeleted), Item{}
	}
	return decideUpdate(o, j)
}

func (o *Operation) toState(j *domain.Job, state domain.JobState) change {
	return change{state: &store.SetJobStateParams{Tenant: o.Tenant, ID: j.ID, State: state, Note: o.note(), By: o.actor()}}
}

// decideResume leaves the pauses of other people alone, unless the order says all.
func decideResume(o *Operation, j *domain.Job) (change, Item) {
	if j.State != domain.JobPaused {
		return change{}, skipped(skipEnabled, "it is not paused")
	}
	person, through, _ := strings.Cut(j.Pause.By, domain.Via)
	mine := person == o.person()
	if o.Of != 0 {
		mine = through == way+o.Of.String()
	}
	if !o.All && (byMachine(j) || !mine) {
		return change{}, skipped(skipOthers, "it stays paused"+by(j))
	}
	c := o.toState(j, domain.JobEnabled)
	c.state.Note = ""
	return c, Item{}
}

// person is the name of who has asked, however the request came.
func (o *Operation) person() string {
	name, _, _ := strings.Cut(o.actor(), domain.Via)
	return name
}

// byMachine reports whether a paused job was paused because its executor or tenant is
// disabled, or because no code declares it any more.
func byMachine(j *domain.Job) bool { return j.Held || j.Declared.PausedGone }

// by says who has paused a job.
func by(j *domain.Job) string {
	switch {
	case byMachine(j):
		return ", by the server"
	case j.Pause.By != "":
		return ", by " + j.Pause.By
	}
	return ""
}

func ownedByCode(j *domain.Job, instead string) Item {
	return Item{Outcome: ItemFailed, Code: domain.CodeOwnedByCode, Message: "the code of its executor declares it, and it belongs to it: " + instead}
}

// decideUpdate makes the revision with other labels, or another owner.
func decideUpdate(o *Operation, j *domain.Job) (change, Item) {
	spec := j.Spec // the value is shared: its map is not changed
	var fields []string
	if o.Action == SetOwner {
		if spec.Owner == o.Order.Owner {
			return change{}, skipped(skipUnchanged, "it has this owner already")
		}
		spec.Owner, fields = o.Order.Owner, []string{"owner.name"}
	} else {
		labels := maps.Clone(j.Spec.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		for _, key := range o.Remove {
			if _, has := labels[key]; has {
				delete(labels, key)
				fields = append(fields, "labels."+key)
			}
		}
		for key, value := range o.Labels {
			if was, has := labels[key]; !has || was != value {
				labels[key] = value
				fields = append(fields, "labels."+key)
			}
		}
		if len(fields) == 0 {
			return change{}, skipped(skipUnchanged, "it has these labels already")
		}
		spec.Labels = labels
	}
	source := domain.SourceConsole
	if j.Declared.LocksConsole() {
		for _, field := range fields {
			if j.Spec.CodeSays.Locks(field) {
				return change{}, ownedByCode(j, "change it there")
			}
		}
		source = j.Source
	}
	if err := domain.CheckLabelsAndAlert(&spec); err != nil {
		it, _ := refusal(err)
		return change{}, it
	}
	return change{update: &store.UpdateJobParams{
		Tenant: o.Tenant, ID: j.ID, IfRevision: j.Revision, Spec: spec, Source: source, DeclarationHash: j.DeclarationHash, By: o.actor(),
	}}, Item{}
}
