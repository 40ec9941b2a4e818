package domain

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ownership says who decides about a job that an application declares in code.
type Ownership string

const (
	// OwnedUntilEdited follows the code until somebody edits the job in the
	// console; from then on it is the console's. It is what applications
	// declare that say nothing.
	OwnedUntilEdited Ownership = ""
	// OwnedByCode follows the code; the console cannot change what it declares.
	OwnedByCode Ownership = "code"
	// OwnedByConsole is made once, from the code, and is the console's then.
	OwnedByConsole Ownership = "console"
	// OwnedPropose changes when somebody accepts what the code proposes.
	OwnedPropose Ownership = "propose"
)

// Removal says what becomes of a job that no build declares any more.
type Removal string

const (
	// RemovalDefault pauses what the code owns and keeps all else.
	RemovalDefault Removal = ""
	RemovalKeep    Removal = "keep"
	RemovalPause   Removal = "pause"
	RemovalDelete  Removal = "delete"
)

// Declared says what a job has to do with code; the zero value: nothing.
type Declared struct {
	// By is the executor whose code declares it; 0 = none does.
	By ExecutorID
	// Name is the job's in the code; a person may have renamed the job. Of a deleted
	// job it is kept where a person deleted it, so that code does not make it again.
	Name      string
	Ownership Ownership
	Removal   Removal
	// Build and Version are of the build whose declaration was taken last.
	Build, Version string
	// Gone: no build declares it any more. PausedGone: it was paused for that, and
	// nobody has paused or resumed it since.
	Gone, PausedGone bool
	// Replaced is the revision that a person had made before code that owns the job
	// replaced it. 0 means that there is none. The job has it again when code does not
	// own it any more.
	Replaced int64
}

// DeclaredName is the name by which code declares the job.
func (j *Job) DeclaredName() string {
	if j.Declared.Name != "" {
		return j.Declared.Name
	}
	return j.Spec.Name
}

// LocksConsole reports whether the console may not change what the code says.
func (d Declared) LocksConsole() bool { return d.Ownership == OwnedByCode && d.By != 0 && !d.Gone }

// Declaration is a job as a build declares it.
type Declaration struct {
	Executor ExecutorID
	Declared Declared
	Hash     string // of the declaration
}

// CheckDeclaration finds values that this version does not know.
func CheckDeclaration(d Declared) error {
	switch {
	case !slices.Contains([]Ownership{OwnedUntilEdited, OwnedByCode, OwnedByConsole, OwnedPropose}, d.Ownership):
		return Invalid("job.ownership", "%q is not one of code, console, propose", d.Ownership)
	case !slices.Contains([]Removal{RemovalDefault, RemovalKeep, RemovalPause, RemovalDelete}, d.Removal):
		return Invalid("job.removal", "%q is not one of keep, pause, delete", d.Removal)
	}
	return nil
}

// DeclareStep is what a declaration does.
type DeclareStep uint8

const (
	DeclareNothing DeclareStep = iota
	DeclareCreate              // make the job
	DeclareUpdate              // the job becomes what is declared
	DeclareMark                // only who declares it, and how, is noted
	DeclarePropose             // somebody is asked
	DeclareRestore             // the job becomes what a person had made of it
)

// Follow is what the job notes of a declaration that it follows from now on.
func (j *Job) Follow(d Declared) Declared {
	was := j.Declared
	switch {
	case d.Ownership != OwnedByCode:
		d.Replaced = 0
	case was.By == d.By && was.Ownership == OwnedByCode:
		d.Replaced = was.Replaced
	case j.Source == SourceConsole:
		d.Replaced = j.Revision
	}
	return d
}

// DecideDeclaration decides about the newest declaration of a job's name. found
// is the living job of that name, or nil; deleted tells that somebody deleted the
// one that this executor declared under it. An error says why it is not taken; with
// DeclareMark it is noted all the same that the job is declared.
func DecideDeclaration(d Declaration, found *Job, executorName string, deleted bool) (DeclareStep, error) {
	own := d.Declared.Ownership
	switch {
	case found == nil && deleted && (own == OwnedByConsole || own == OwnedPropose):
		return DeclareNothing, nil // somebody did not want it
	case found == nil && deleted && own == OwnedUntilEdited:
		return DeclareNothing, Errorf(CodeEdited, "the job %q was deleted in the console; the declaration in code is not applied until somebody makes a job of this name", d.Declared.Name)
	case found == nil && own == OwnedPropose:
		return DeclarePropose, nil
	case found == nil:
		return DeclareCreate, nil
	case found.Executor != d.Executor && found.Spec.Name != d.Declared.Name && found.Declared.Name == d.Declared.Name:
		return DeclareNothing, ErrEdited(found) // renamed and moved: its name is free, and it is the console's
	case found.Executor != d.Executor:
		return DeclareNothing, JobNameTaken(found.Spec.Name, executorName)
	}
	if found.Declared.Replaced != 0 && own != OwnedByCode {
		return DeclareRestore, nil
	}
	same := found.DeclarationHash == d.Hash
	mark := DeclareNothing
	was := found.Declared
	was.Build, was.Version = d.Declared.Build, d.Declared.Version // alone no reason to write
	if was != d.Declared {
		mark = DeclareMark
	}
	switch {
	case own == OwnedByConsole:
		if !same {
			mark = DeclareMark // so that it is known next time
		}
		return mark, nil
	case same && (found.Source == SourceCode || own != OwnedByCode):
		return mark, nil
	case own == OwnedPropose:
		return DeclarePropose, nil
	case own == OwnedUntilEdited && found.Source != SourceCode:
		return mark, ErrEdited(found)
	default:
		return DeclareUpdate, nil
	}
}

// ErrEdited says that a declaration is not applied to a job that a person has edited.
func ErrEdited(found *Job) error {
	name := strconv.Quote(found.DeclaredName())
	if found.Spec.Name != found.DeclaredName() {
		name += ", which is called " + strconv.Quote(found.Spec.Name) + " now,"
	}
	return Errorf(CodeEdited, "the job %s was edited in the console; the declaration in code is not applied", name)
}

// JobNameTaken refuses a declaration whose name the job of another executor of the
// tenant has.
func JobNameTaken(name, executor string) *Error {
	return Errorf(CodeConflict, "the executor %q has a job %q already, and names of jobs are unique in the tenant: "+
		"give this one another name, or rename or delete that one", executor, name)
}

// DecideRemoval says what becomes of a job that no build declares any more:
// RemovalKeep, RemovalPause or RemovalDelete. What was edited in the console
// stays, unless the code owns it, and what somebody has paused is not deleted.
func DecideRemoval(j *Job) Removal {
	own, removal := j.Declared.Ownership, j.Declared.Removal
	switch {
	case own != OwnedByCode && (own != OwnedUntilEdited || j.Source != SourceCode):
		return RemovalKeep
	case removal == RemovalDelete && j.State == JobPaused && !j.Held:
		return RemovalKeep // that somebody paused it lasts when the code declares it again
	case removal != RemovalDefault:
		return removal
	case own == OwnedByCode:
		return RemovalPause
	default:
		return RemovalKeep
	}
}

// DeclaredJob is what the newest build that is known declares of a job, with the
// settings kept that code has not said.
type DeclaredJob struct {
	Declaration
	Spec JobSpec
}

// MayGiveBack says why a job that was edited in the console cannot be given back
// to the code that declares it, or nil. says is the declaration of the newest version that
// runs. The job was edited, so it need not have followed that version.
func (j *Job) MayGiveBack(says Declared) error {
	switch {
	case says.By == 0:
		return Errorf(CodeConflict, "the job %q is not declared by the code of an application", j.Spec.Name)
	case says.Gone:
		return Errorf(CodeConflict, "no version of the application that runs declares the job %q any more", j.Spec.Name)
	case says.Ownership == OwnedByConsole:
		return Errorf(CodeConflict, "the code says that the console decides about the job %q", j.Spec.Name)
	case j.Source == SourceCode:
		return Errorf(CodeConflict, "the job %q was not edited in the console: it is as its code declares it", j.Spec.Name)
	}
	return nil
}

// Proposal is what code wants a job to become.
type Proposal struct {
	ID       int64
	TenantID TenantID
	Executor ExecutorID
	Name     string // of the job, which may not exist yet
	State    ProposalState
	Hash     string // of the declaration
	Build    string
	Version  string
	Removal  Removal
	Spec     JobSpec

	ProposedAt, DecidedAt time.Time
	DecidedBy             string
}

// ProposalState tells whether a proposal waits for a decision.
type ProposalState uint8

const (
	ProposalPending  ProposalState = 1
	ProposalDeclined ProposalState = 2 // kept, so that it is not made again
)

// CodeSays lists what code declares of a job's labels, alerts and owner, by the
// paths of the API and in their order: "labels.KEY", "alert.onFailure",
// "alert.includeNoExecutor", "alert.emails", "alert.webhookUrl", "owner". That is the
// code's, like all other settings of a declared job; the rest of these is the
// console's (docs/adr/0057).
//
// Nil: not noted, of jobs that were made in the console or stored before this was
// noted. Their labels and alerts are the console's, and their owner is the code's.
type CodeSays []string

// Has reports whether code declares the setting.
func (c CodeSays) Has(setting string) bool { return slices.Contains(c, setting) }

// Locks reports whether a setting, as the API names it, is the code's where the code
// owns the job.
func (c CodeSays) Locks(field string) bool {
	switch {
	case strings.HasPrefix(field, "labels."), strings.HasPrefix(field, "alert."):
		return c.Has(field)
	case strings.HasPrefix(field, "owner."):
		return c == nil || c.Has("owner")
	}
	return true
}

// Same reports whether both say the same. Where one is not noted, the owner does
// not count.
func (c CodeSays) Same(other CodeSays) bool {
	noted := func(c CodeSays) CodeSays {
		return slices.DeleteFunc(slices.Clone(c), func(s string) bool { return s == "owner" })
	}
	if c == nil || other == nil {
		c, other = noted(c), noted(other)
	}
	return slices.Equal(c, other)
}

// KeepConsoles makes of what code declares what the job becomes that was old: its
// labels, alerts and owner stay where code does not say them. A label that code said
// before, and does not say any more, goes; such a setting of its alerts has its
// default again. An owner stays.
func (s *JobSpec) KeepConsoles(old *JobSpec) error {
	labels := map[string]string{}
	for key, value := range old.Labels {
		if !old.CodeSays.Has("labels." + key) {
			labels[key] = value
		}
	}
	ours := len(labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return s.CodeSays.Has("labels." + key) })
	for key, value := range s.Labels {
		if s.CodeSays.Has("labels." + key) {
			labels[key] = value
		}
	}
	if len(labels) > MaxLabels {
		return Invalid("job.labels", "a job has at most %d labels; this one has %d of the console beside those that are declared", MaxLabels, ours)
	}
	if s.Labels = labels; len(labels) == 0 {
		s.Labels = nil
	}

	kept := old.Alert // its signing key is never the code's
	for setting, from := range map[string]func(to, from *Alert){
		"alert.onFailure":         func(to, from *Alert) { to.OnFailure = from.OnFailure },
		"alert.includeNoExecutor": func(to, from *Alert) { to.IncludeNoExecutor = from.IncludeNoExecutor },
		"alert.emails":            func(to, from *Alert) { to.Emails = from.Emails },
		"alert.webhookUrl":        func(to, from *Alert) { to.WebhookURL = from.WebhookURL },
	} {
		switch {
		case s.CodeSays.Has(setting):
			from(&kept, &s.Alert)
		case old.CodeSays.Has(setting):
			from(&kept, &DefaultAlert)
		}
	}
	if s.Alert = kept; s.Alert.WebhookURL == "" {
		s.Alert.WebhookSecret = nil
	}
	if !s.CodeSays.Locks("owner.email") {
		s.Owner = old.Owner
	}
	return nil
}
