package domain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Build is one version of an executor's application as it registers: a set of
// handlers and declared jobs. Instances of one build register the same.
type Build struct {
	TenantID TenantID
	Executor ExecutorID
	// Digest names what it registers, version and generation included.
	Digest string
	// Version is the application's own, as it says; often a semantic one, and
	// perhaps empty.
	Version string
	// Generation orders builds where the application says it; 0 = it does not.
	Generation int64
	// Handlers are the names of its handlers.
	Handlers []string
	// Catalogue is what it registered, in the form of whoever registers. Lists
	// leave it out.
	Catalogue []byte
	// NoJobs: its instances may declare no jobs, by their join tokens. One that may
	// is enough for its build: what they declare is the same.
	NoJobs bool
	// Applied: its catalogue is in force. Contested: not all of it could be taken.
	Applied, Contested bool
	// Instances is how many of its instances are heard. Present: one has not
	// gone, or the last one left less than BuildGrace ago.
	Instances int
	Present   bool

	FirstSeenAt, LastSeenAt time.Time
}

// RefusedDeclaration is a job that the present builds of an executor declare,
// and that was not taken.
type RefusedDeclaration struct {
	// Name of the job.
	Name string
	// Code and Message say why; the message names each field that is wrong.
	Code    Code
	Message string
	// Version of the application that declares it; may be empty.
	Version string
	At      time.Time
}

// BuildGrace is how long a build whose last instance has left still counts: one
// that restarts, or crashes and comes again, does not hand its jobs over.
const BuildGrace = time.Minute

// CompareBuilds orders builds by age, the newest last: by generation, where
// applications say it; then by semantic version, before which all others come;
// then by when they were first seen. It is one order of all builds, so that no
// set of versions can take turns.
func CompareBuilds(a, b *Build) int {
	va, vb := parseVersion(a.Version), parseVersion(b.Version)
	return cmp.Or(
		cmp.Compare(a.Generation, b.Generation),
		va.compare(vb),
		a.FirstSeenAt.Compare(b.FirstSeenAt),
		strings.Compare(a.Digest, b.Digest),
	)
}

// semver is a parsed semantic version (semver.org 2.0.0, build metadata left
// out); the zero value is none, and older than any.
type semver struct {
	ok         bool
	core       [3]uint64
	preRelease []string
	moreToCome bool // a pre-release comes before its release
}

// parseVersion takes "1.4.2", "v1.4", "2" and "1.5.0-rc.1+build".
func parseVersion(text string) (v semver) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	core, pre, has := strings.Cut(text, "-")
	parts := strings.Split(core, ".")
	if len(parts) > len(v.core) {
		return semver{}
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return semver{}
		}
		v.core[i] = n
	}
	if v.ok = true; has {
		v.preRelease, v.moreToCome = strings.Split(pre, "."), true
	}
	return v
}

func (v semver) compare(o semver) int {
	if v.ok != o.ok {
		return compareBool(v.ok, o.ok)
	}
	if c := slices.Compare(v.core[:], o.core[:]); c != 0 {
		return c
	}
	if v.moreToCome != o.moreToCome {
		return compareBool(o.moreToCome, v.moreToCome)
	}
	return slices.CompareFunc(v.preRelease, o.preRelease, comparePart)
}

// comparePart compares identifiers of a pre-release: numbers by value, and
// before words.
func comparePart(a, b string) int {
	na, errA := strconv.ParseUint(a, 10, 64)
	nb, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(na, nb)
	case (errA == nil) != (errB == nil):
		return compareBool(errB == nil, errA == nil)
	default:
		return strings.Compare(a, b)
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// PresentBuilds returns those that count, the newest last.
func PresentBuilds(builds []Build) []Build {
	out := slices.DeleteFunc(slices.Clone(builds), func(b Build) bool { return !b.Present })
	slices.SortFunc(out, func(a, b Build) int { return CompareBuilds(&a, &b) })
	return out
}

// SettledBuilds reports whether exactly the present builds are in force, or
// nothing of the executor is present: then what was in force stays.
func SettledBuilds(builds []Build) bool {
	present := false
	settled := true
	for _, b := range builds {
		present = present || b.Present
		settled = settled && b.Applied == b.Present
	}
	return settled || !present
}
