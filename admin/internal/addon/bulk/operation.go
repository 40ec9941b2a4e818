package bulk

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Bounds of operations.
const (
	// MaxItems is how many items an operation may have.
	MaxItems = 100_000
	// MaxRead is how many runs are read to find those of a filter.
	MaxRead = 1_000_000
	// maxOpen is how many operations of a tenant may be under way at once.
	maxOpen = 10
	// kept operations of a tenant stay, for keptFor. While there are maxKept, there is no
	// room for another one.
	kept    = 100
	maxKept = 200
	keptFor = 30 * 24 * time.Hour
	// maxPause is how far ahead the end of a pause may be.
	maxPause = 366 * 24 * time.Hour
)

// ID is the id of an operation.
type ID int64

func (id ID) String() string { return domain.JobID(id).String() }

// Action is what is done with each item.
type Action string

const (
	Pause    Action = "pause"
	Resume   Action = "resume"
	Run      Action = "run"
	Delete   Action = "delete"
	Label    Action = "label"
	SetOwner Action = "set-owner"
	Retry    Action = "retry"
	Cancel   Action = "cancel"
)

// OnRuns reports whether the items are runs. They are jobs otherwise.
func (a Action) OnRuns() bool { return a == Retry || a == Cancel }

// Needs is the right to do it with one item.
func (a Action) Needs() domain.Permission {
	switch a {
	case Delete, Label, SetOwner:
		return domain.PermEdit
	}
	return domain.PermOperate
}

// States of an operation.
type State string

const (
	Waiting   State = "waiting" // until Order.At
	Running   State = "running" // from its creation or Order.At on
	Done      State = "done"    // each item has an answer
	Cancelled State = "cancelled"
)

// Order is the part of an operation that never changes. It is stored as JSON.
type Order struct {
	Action Action `json:"action"`
	Filter Filter `json:"filter"`
	Note   string `json:"note,omitempty"`
	// All: Resume resumes jobs that other people have paused, too.
	All bool `json:"all,omitempty"`
	// Of: Resume resumes what this operation has paused. 0: what the same person has.
	Of ID `json:"of,omitempty"`
	// Until is the end of a Pause, at which the operation Then resumes the jobs. Zero: none.
	Until time.Time `json:"until,omitzero"`
	Then  ID        `json:"then,omitempty"`
	// At is when the operation begins. Zero: at once.
	At time.Time `json:"at,omitzero"`
	// Labels are set, Remove are taken away.
	Labels map[string]string `json:"labels,omitempty"`
	Remove []string          `json:"remove,omitempty"`
	Owner  domain.Owner      `json:"owner,omitzero"`
	// During: runs start although nothing is to start because of maintenance.
	During bool `json:"during,omitempty"`
	// By is who has asked for it.
	By Person `json:"by"`
}

// Person is an identity without its rights.
type Person struct {
	Kind auth.Kind `json:"kind"`
	Name string    `json:"name"`
	Via  string    `json:"via,omitempty"`
}

// Filter has the conditions that items meet. Empty ones are met by all. It is the filter of
// the list of jobs, or of the list of runs with what is asked of their jobs.
type Filter struct {
	IDs      []domain.JobID    `json:"ids,omitempty"`
	Executor domain.ExecutorID `json:"executor,omitempty"`
	Handler  string            `json:"handler,omitempty"`
	Name     string            `json:"name,omitempty"`
	Query    string            `json:"q,omitempty"`
	Label    string            `json:"label,omitempty"`
	Owner    string            `json:"owner,omitempty"`
	// JobState is of jobs. The fields behind it are of runs.
	JobState  domain.JobState `json:"jobState,omitempty"`
	Job       domain.JobID    `json:"job,omitempty"`
	RunStates []domain.State  `json:"runStates,omitempty"`
	Cause     domain.Cause    `json:"cause,omitempty"`
	From      time.Time       `json:"from,omitzero"`
	To        time.Time       `json:"to,omitzero"`
	Error     string          `json:"error,omitempty"`
	// Fingerprint is of the error that a run ended with; 0: any.
	Fingerprint domain.Fingerprint `json:"fingerprint,omitempty"`
}

// jobs is the filter as the list of jobs takes it. Jobs that the server has made are left
// out.
func (f *Filter) jobs(tenant domain.TenantID) store.ListJobsParams {
	return store.ListJobsParams{
		Tenant: tenant, IDs: f.IDs, Executor: f.Executor, Handler: f.Handler, Name: f.Name, Query: f.Query, Label: f.Label, Owner: f.Owner,
		State: f.JobState, Kind: domain.JobPlain,
	}
}

// jobs is the filter of an operation. One that ends a pause has only jobs of that pause.
func (o *Operation) jobs() store.ListJobsParams {
	p := o.Filter.jobs(o.Tenant)
	if o.Of != 0 && !o.All {
		p.PausedVia = way + o.Of.String()
	}
	return p
}

// runs is the filter as the list of runs takes it, without the conditions on their jobs.
func (f *Filter) runs(tenant domain.TenantID) store.ListExecutionsParams {
	return store.ListExecutionsParams{
		Tenant: tenant, Job: f.Job, Executor: f.Executor, States: f.RunStates, Cause: f.Cause, From: f.From, To: f.To, Error: f.Error,
	}
}

// fits reports whether a run ended with the error that is asked for. The error of a run is
// compared here, since no index has its fingerprint.
func (f *Filter) fits(e *domain.Execution) bool {
	if f.Fingerprint == 0 {
		return true
	}
	mark, _ := domain.ErrorOf(e)
	return mark == f.Fingerprint
}

// asksJobs reports whether a run meets the filter only if its job does.
func (f *Filter) asksJobs() bool {
	return f.Handler != "" || f.Name != "" || f.Query != "" || f.Label != "" || f.Owner != ""
}

// Operation is an action on many items, with how far it is.
type Operation struct {
	ID     ID
	Tenant domain.TenantID
	Order
	State State
	// Total is the number of items at its creation.
	Total int64
	// Cursor is the last item that has an answer. 0: none has.
	Cursor int64
	// Read is how many runs were read to find the items.
	Read                  int64
	Done, Skipped, Failed int64
	// RetryOf is the operation whose failed items are its items. 0: the filter has them.
	RetryOf ID
	// Turn is a fence: it grows with each node that takes the operation.
	Turn       int64
	Message    string
	CreatedAt  time.Time
	FinishedAt time.Time
}

// resume is the operation that ends a pause.
func (o *Operation) resume(id ID) Operation {
	return Operation{ID: id, Tenant: o.Tenant, State: Waiting, Total: o.Total, Order: Order{
		Action: Resume, Of: o.ID, At: o.Until, Note: o.Note, By: o.By, Filter: Filter{JobState: domain.JobPaused},
	}}
}

// note stands beside the jobs. That of a pause with an end names the end.
func (o *Operation) note() string {
	if o.Until.IsZero() {
		return o.Note
	}
	end := fmt.Sprintf("until %s, by bulk operation %s", o.Until.UTC().Format("2006-01-02 15:04:05Z"), o.Then)
	if o.Note == "" {
		return end
	}
	return end + ": " + o.Note
}

// way parts the number of an operation from the name of who asked for it.
const way = "bulk "

// identity acts for who has asked. Its name says by which operation.
func (o *Operation) identity() auth.Identity {
	return Person{Kind: o.By.Kind, Name: o.By.Name, Via: way + o.ID.String()}.identity(o.Tenant)
}

// actor is the name that changes are written with.
func (o *Operation) actor() string { return o.identity().Actor() }

// Answered is how many items have an answer.
func (o *Operation) Answered() int64 { return o.Done + o.Skipped + o.Failed }

// Outcome is what became of an item.
type Outcome string

const (
	ItemDone    Outcome = "done"
	ItemSkipped Outcome = "skipped" // it was not to be done
	ItemFailed  Outcome = "failed"  // it was refused
)

// Item is an item with its answer. Those that are done are counted only.
type Item struct {
	ID      int64
	Name    string // of the job
	Outcome Outcome
	// Code is that of the refusal, or names the reason of a skip.
	Code    domain.Code
	Message string
}

// Reasons of skips.
const (
	skipPaused    domain.Code = "paused_already"
	skipEnabled   domain.Code = "not_paused"
	skipOthers    domain.Code = "paused_by_others"
	skipUnchanged domain.Code = "unchanged"
	skipGone      domain.Code = "gone"
	skipEnded     domain.Code = "already_finished"
	skipRetried   domain.Code = "retried_already"
)

func skipped(code domain.Code, message string) Item {
	return Item{Outcome: ItemSkipped, Code: code, Message: message}
}

// count adds answers, and returns those that are stored.
func (o *Operation) count(items []Item) []Item {
	for _, it := range items {
		switch it.Outcome {
		case ItemDone:
			o.Done++
		case ItemSkipped:
			o.Skipped++
		default:
			o.Failed++
		}
	}
	return slices.DeleteFunc(items, func(it Item) bool { return it.Outcome == ItemDone })
}

// refusal is the answer of an item that err refuses. again: err does not speak of the item,
// and the batch has to be repeated.
func refusal(err error) (it Item, again bool) {
	switch code := domain.CodeOf(err); code {
	case domain.CodeNotFound:
		return skipped(skipGone, "it is not there any more"), false
	case domain.CodeAlreadyFinished:
		return skipped(skipEnded, err.Error()), false
	case domain.CodeConflict, domain.CodeInUse, domain.CodeInvalid, domain.CodeOwnedByCode, domain.CodeQuotaExceeded, domain.CodePolicyRefused,
		domain.CodeExecutorDisabled, domain.CodeMaintenance, domain.CodeUnfitInput, domain.CodeUnknownHandler, domain.CodeRevisionMismatch, domain.CodeKeyReused:
		return Item{Outcome: ItemFailed, Code: code, Message: cmp.Or(err.Error(), string(code))}, false
	}
	return Item{}, true
}

// leavesRetries reports whether runs that are retries themselves are no items: the same retry
// asked for twice does nothing the second time, also if its runs failed.
func (o *Operation) leavesRetries() bool {
	return o.Action == Retry && o.Filter.Cause == "" && len(o.Filter.IDs) == 0
}
