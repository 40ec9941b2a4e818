package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Kind describes a sort of documents. It is fixed after construction. Make one with Of.
type Kind struct {
	// Name is that of the field kind, such as Connection. Noun is the same in messages, Path the
	// plural in addresses, such as connections.
	Name, Noun, Path string
	// Component names the schemas of the kind. Empty: Name does.
	Component string
	// About says in one sentence what such a document is for.
	About string
	// Most bounds the documents of a tenant. 0: only the bytes that it stores do.
	Most int64
	// Read and Edit are the rights to look at documents and to write them.
	Read, Edit domain.Permission
	// Cluster kinds belong to the cluster, not to a tenant, and are for platform administrators.
	Cluster bool
	// Local kinds stand in provision files only, since a request must not carry their secrets.
	Local bool
	// Partial kinds have settings with defaults: a provision file also sets those of an existing
	// document that have their default.
	Partial bool
	// Secrets are the names of secrets that a document may have, with their meaning.
	Secrets []SecretField
	// Last kinds name jobs: an apply writes their documents after the jobs.
	Last bool
	// Purpose is part of what is sealed; empty if there are no secrets.
	Purpose string
	// Computes is set if a check takes a processor for some time.
	Computes bool
	// Versioned kinds keep their older versions.
	Versioned bool
	// Literal are paths of texts in which ${{ }} is not the place of a value, such as spec.content.
	Literal []string
	// Notes are sentences for the descriptions of operations.
	Notes Notes

	// SpecType and StatusType are those of spec and status. StatusType is nil without a status.
	SpecType, StatusType reflect.Type

	rules rules
}

// SecretField is a secret that documents of a kind may have.
type SecretField struct {
	Name, About string
	// Address secrets say where a document leads. With another address, the document's other
	// secrets must be given again.
	Address bool
}

// ID is the noun in ids of operations, such as alert-channel.
func (k *Kind) ID() string { return strings.ReplaceAll(k.Noun, " ", "-") }

// A is the noun with its article.
func (k *Kind) A() string {
	if strings.ContainsRune("aeiou", rune(k.Noun[0])) {
		return "an " + k.Noun
	}
	return "a " + k.Noun
}

// Notes say what a kind adds to the general description of an operation.
type Notes struct{ Create, Update, Delete string }

// Draft is a document that is about to be written.
type Draft[S any] struct {
	Tenant domain.TenantID
	// Old is the document in its place; nil: it is new.
	Old  *Document[S]
	Name string
	Spec S
	// Secrets are all secrets that it will have.
	Secrets map[string]string
	// Warnings are for a person who reads the plan.
	Warnings []Warning
}

// Rules are what a kind asks of its documents. Each may be nil.
type Rules[S any] struct {
	// Complete fills in defaults and removes spaces.
	Complete func(*S)
	// Check adds wrong fields to c, with locations below body. It may ask a database.
	Check func(ctx context.Context, d *Draft[S], c *domain.Checker) error
	// SameReceiver tells whether secrets that were given for old may be used with spec. An
	// editor who cannot read a secret could send it to a server of his own otherwise.
	SameReceiver func(spec, old *S) bool
	// Refs are the references of a spec to other documents. nil: there are none.
	Refs func(*S) []Refs
	// Brief removes from a spec what lists leave out.
	Brief func(*S)
	// Status is what an answer tells beside the spec. Its type is StatusType.
	Status func(*Document[S]) any
	// Older converts a stored text of before the mechanism.
	Older func(text []byte) (spec S, marks map[string]string, err error)
}

// rules are Rules without their type.
type rules interface {
	check(ctx context.Context, d *draft) error
	sameReceiver(spec json.RawMessage, old *Row) (bool, error)
	status(row *Row) (any, error)
	brief(row *Row) error
	rewrite(spec json.RawMessage, to replacing) (json.RawMessage, error)
	isBrief() bool
	older(text []byte) (Row, error)
}

// draft is Draft without its type. check writes the completed spec.
type draft struct {
	tenant  domain.TenantID
	old     *Row
	name    string
	spec    json.RawMessage
	secrets map[string]string
}

// Of completes a kind whose specs have type S.
func Of[S any](k Kind, r Rules[S]) *Kind {
	if k.Component == "" {
		k.Component = k.Name
	}
	k.SpecType = reflect.TypeFor[S]()
	k.rules = typed[S]{r}
	return &k
}

type typed[S any] struct{ Rules[S] }

// Read gives a row its type.
func Read[S any](row *Row) (Document[S], error) {
	d := Document[S]{Meta: row.Meta}
	if err := json.Unmarshal(row.Spec, &d.Spec); err != nil {
		return Document[S]{}, fmt.Errorf("decode spec of document %d: %w", row.ID, err)
	}
	return d, nil
}

// check completes and checks a draft.
func (t typed[S]) check(ctx context.Context, d *draft) error {
	typedDraft := &Draft[S]{Tenant: d.tenant, Name: d.name, Secrets: d.secrets}
	if err := json.Unmarshal(d.spec, &typedDraft.Spec); err != nil {
		return domain.Misfit("body.spec", err)
	}
	if d.old != nil {
		old, err := Read[S](d.old)
		if err != nil {
			return err
		}
		typedDraft.Old = &old
	}
	if t.Complete != nil {
		t.Complete(&typedDraft.Spec)
	}
	var c domain.Checker
	if t.Check != nil {
		if err := t.Check(ctx, typedDraft, &c); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	spec, err := json.Marshal(typedDraft.Spec)
	d.spec = spec
	return err
}

func (t typed[S]) sameReceiver(spec json.RawMessage, old *Row) (bool, error) {
	if t.SameReceiver == nil {
		return true, nil
	}
	now, err := Read[S](&Row{Spec: spec})
	if err != nil {
		return false, err
	}
	was, err := Read[S](old)
	if err != nil {
		return false, err
	}
	if t.Complete != nil {
		t.Complete(&now.Spec)
	}
	return t.SameReceiver(&now.Spec, &was.Spec), nil
}

func (t typed[S]) status(row *Row) (any, error) {
	if t.Status == nil {
		return nil, nil
	}
	d, err := Read[S](row)
	if err != nil {
		return nil, err
	}
	return t.Status(&d), nil
}

func (t typed[S]) isBrief() bool { return t.Brief != nil }

func (t typed[S]) brief(row *Row) error {
	if t.Brief == nil {
		return nil
	}
	d, err := Read[S](row)
	if err != nil {
		return err
	}
	t.Brief(&d.Spec)
	row.Spec, err = json.Marshal(d.Spec)
	return err
}

func (t typed[S]) older(text []byte) (row Row, err error) {
	if t.Older == nil {
		return row, fmt.Errorf("a text without apiVersion")
	}
	spec, marks, err := t.Older(text)
	if err == nil {
		row.Marks = maps.Clone(marks)
		row.Spec, err = json.Marshal(spec)
	}
	return row, err
}

// Older converts a stored text of before the mechanism.
func (k *Kind) Older(text []byte) (Row, error) { return k.rules.older(text) }

// Status is what an answer tells of a document beside its spec; nil: nothing.
func (k *Kind) Status(row *Row) (any, error) { return k.rules.status(row) }

// IsBrief reports whether lists leave something out.
func (k *Kind) IsBrief() bool { return k.rules.isBrief() }

// Brief removes from a row what lists leave out.
func (k *Kind) Brief(row *Row) error { return k.rules.brief(row) }
