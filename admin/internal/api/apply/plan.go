package apply

import (
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// DocumentBatch has documents of any kind.
type DocumentBatch struct {
	Documents []json.RawMessage `json:"documents" minItems:"1" maxItems:"1000" doc:"Documents of any kind, each with kind, name and spec"`
	Plan      string            `json:"plan,omitempty" maxLength:"64" doc:"Id of the plan that was looked at; refused if the plan would be another one now. Default: apply without a look"`
	TakeOver  bool              `json:"takeOver,omitempty" doc:"Jobs that the code of an application has decided about follow these documents from now on. Default: a plan refuses to change them"`

	Set    string `json:"set,omitempty" maxLength:"128" doc:"Name of a set that the documents belong to from now on. Default: none, and they stay in the sets in which they are"`
	Prune  bool   `json:"prune,omitempty" doc:"Delete documents of the set that the request does not hold, at most 1000. Default: they stay"`
	Delete bool   `json:"delete,omitempty" doc:"Delete the documents that the request names; only kind and name count. Default: create and change them"`

	AllowUnknownHandler bool `json:"allowUnknownHandler,omitempty" doc:"Accept handlers that no instance has registered yet"`
	AllowUnfitInput     bool `json:"allowUnfitInput,omitempty" doc:"Accept inputs that do not fit what is registered of the handlers"`
}

// Plan says what an apply does.
type Plan struct {
	ID     string     `json:"id" doc:"Names the documents and the versions that they would replace"`
	Items  []PlanItem `json:"items" doc:"One for each document, in the order of the request, and one for each that is pruned"`
	Create int        `json:"create" doc:"Number of new documents"`
	Update int        `json:"update" doc:"Number of documents that change"`
	Delete int        `json:"delete" doc:"Number of documents that are deleted"`
	Same   int        `json:"same" doc:"Number of documents that stay as they are"`
	Join   int        `json:"join" doc:"Number of documents that were not in the set"`
	Left   int        `json:"left" doc:"Number of documents of the set that the request does not hold, and that stay"`
	NewSet bool       `json:"newSet,omitempty" doc:"No document belongs to the set yet"`
	Sets   []string   `json:"sets,omitempty" doc:"With newSet: the names of the sets that have documents, at most 100"`
	Failed int        `json:"failed" doc:"Number of documents that an apply could not write. If a plan has one, an apply writes nothing"`
}

// PlanItem is what an apply does with one document.
type PlanItem struct {
	Kind     string        `json:"kind" doc:"Kind of the document"`
	Name     string        `json:"name" doc:"Its name"`
	Action   string        `json:"action" enum:"create,update,delete,same" doc:"What an apply does"`
	ID       string        `json:"id,omitempty" doc:"Id of the document; absent: it is new"`
	Version  int64         `json:"version" doc:"Version that is there, or after an apply the version that was written; 0: there is none"`
	Changes  []PlanChange  `json:"changes,omitempty" doc:"Fields that differ"`
	Fires    *PlanFires    `json:"fires,omitempty" doc:"Next fire times of a job; absent: they stay as they are"`
	Warnings []PlanWarning `json:"warnings,omitempty" doc:"Reasons to look twice; they do not keep an apply from it"`
	Error    string        `json:"error,omitempty" doc:"Why an apply could not write it, or would not; absent: it could"`
}

// PlanChange is a field that differs.
type PlanChange struct {
	Path   string          `json:"path" doc:"Path of the field, such as spec.zone"`
	Before json.RawMessage `json:"before,omitempty" doc:"Value that is there; absent: none"`
	After  json.RawMessage `json:"after,omitempty" doc:"Value of the document; absent: none"`
}

// PlanFires are a job's next fire times.
type PlanFires struct {
	Before []string `json:"before" doc:"The next three as the job is; empty: none"`
	After  []string `json:"after" doc:"The next three after the apply; empty: none"`
	Paused bool     `json:"paused,omitempty" doc:"The job is paused: it does not fire at these times until it is resumed"`
}

// PlanWarning is a reason to look twice.
type PlanWarning struct {
	Code string `json:"code" enum:"no_instance,many_fires,takes_over,never_fires,invites,named" doc:"Stable name of the warning"`
	Text string `json:"text" doc:"The same for people"`
}

// DocumentKind is a kind of documents that an apply knows.
type DocumentKind struct {
	Name       string `json:"name" doc:"Value of the field kind"`
	Path       string `json:"path" doc:"Last segment of the address of its list"`
	APIVersion string `json:"apiVersion" doc:"Value of the field apiVersion"`
	Brief      bool   `json:"brief" doc:"The list leaves long parts out, which each document has at its own address"`
	// Literal is not empty for few kinds.
	Literal []string `json:"literal" doc:"Paths of texts in which ${{ }} is not the place of a value"`
}

// answer is the request's plan, and after an apply its outcome.
func (r *request) answer() Plan {
	out := Plan{ID: r.plan, Items: []PlanItem{}, Join: len(r.join()), Left: r.left, NewSet: r.newSet, Sets: r.sets}
	for _, e := range append(r.entries[:len(r.entries):len(r.entries)], r.deletes...) {
		item := itemOf(e)
		switch {
		case item.Error != "":
			out.Failed++
		case e.step.Action == resource.ActionCreate:
			out.Create++
		case e.step.Action == resource.ActionUpdate:
			out.Update++
		case e.step.Action == resource.ActionDelete:
			out.Delete++
		default:
			out.Same++
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func itemOf(e *entry) PlanItem {
	item := PlanItem{Kind: e.kind.Name, Name: e.step.Name, Action: string(e.step.Action), Version: e.step.Version}
	if e.step.ID != 0 {
		item.ID = domain.JobID(e.step.ID).String()
	}
	for _, c := range e.step.Changes {
		item.Changes = append(item.Changes, PlanChange(c))
	}
	if f := e.step.Fires; f != nil {
		item.Fires = &PlanFires{Before: web.Instants(f.Before), After: web.Instants(f.After), Paused: f.Paused}
	}
	for _, w := range e.step.Warnings {
		item.Warnings = append(item.Warnings, PlanWarning(w))
	}
	if e.step.Refused != nil {
		item.Error = message(e.step.Refused)
	}
	if e.err != nil {
		item.Error = message(e.err)
	}
	return item
}
