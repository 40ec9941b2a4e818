package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// User is a document that refers to another one. Noun is that of its kind.
type User struct {
	SetMember
	Noun, Name string
}

// Going are documents that a request deletes, or changes so that they may refer to others.
type Going map[SetMember]bool

// MaxGoing bounds the documents that one request deletes, prunes or changes.
const MaxGoing = 2000

// Stay are the users that a request leaves as they are.
func (g Going) Stay(users []User) []User {
	return slices.DeleteFunc(slices.Clone(users), func(u User) bool { return g[u.SetMember] })
}

// shownUsers is how many names a refusal has.
const shownUsers = 5

// Refuse refuses the deletion of a document of a kind that others refer to. nil: none does.
func (k *Kind) Refuse(name string, users []User) error {
	if len(users) == 0 {
		return nil
	}
	noun := users[0].Noun
	of := slices.DeleteFunc(slices.Clone(users), func(u User) bool { return u.Noun != noun })
	return domain.Errorf(domain.CodeConflict, "the %s %q is used by the %s; remove it there first", k.Noun, name, named(of))
}

// named names users of one kind.
func named(of []User) string {
	noun := of[0].Noun
	names := domain.Collect(of[:min(len(of), shownUsers)], func(u *User) string { return fmt.Sprintf("%q", u.Name) })
	if len(of) > len(names) {
		names = append(names, "…")
	}
	if len(of) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}

// WarnNamed tells of documents of one kind that go on naming an object which is deleted. There is
// at least one.
func WarnNamed(users []User) Warning {
	return Warning{Code: "named", Text: "it is named by the " + named(users) + ": change it there, or it matches nothing of this any more"}
}
