package deptest

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the root module's path; the other two lie below it.
const Module = "github.com/carillon-sched/carillon"

// Package is what `go list -json` says of one package, as far as it matters.
type Package struct {
	ImportPath string
	Imports    []string // without those of test files
	Standard   bool     // part of Go's standard library
}

// Room is a part of the tree with rules of its own.
type Room struct {
	// Path is below Module; packages below it belong to the room as well,
	// unless a longer Path claims them. "" is the module's root.
	Path string
	// May lists the rooms, by Path, that it may import besides itself.
	May []string
	// Why is the reason, for the one who is refused.
	Why string
}

// Library is a foreign module that only some rooms may import.
type Library struct {
	// Path is the import path, without major version; what lies below it
	// belongs to it.
	Path  string
	Rooms []string
	Why   string
}

// Closed is a module of ours whose users inherit all that it imports, however
// indirectly.
type Closed struct {
	// Path is below Module, as a Room's.
	Path string
	// May lists the foreign modules it may inherit.
	May []string
	Why string
}

// Rules is the whole table.
type Rules struct {
	Rooms     []Room
	Libraries []Library
	Closed    []Closed
	// Machines are folders, below Module, of what only this repository's tests
	// and measurements run. Nothing else may import them, whatever rooms allow.
	Machines []string
}

// Check returns one line per import that the rules forbid, sorted. packages
// holds ours and all that they import, directly or not.
func Check(packages []Package, rules Rules) []string {
	var broken []string
	for _, pkg := range packages {
		if !within(pkg.ImportPath, Module) {
			continue
		}
		room, known := rules.roomOf(pkg.ImportPath)
		if !known {
			broken = append(broken, fmt.Sprintf(
				"%s belongs to no room: add it to internal/deptest/rules.go", pkg.ImportPath))
			continue
		}
		for _, imported := range pkg.Imports {
			problem := rules.judge(room, imported)
			if rules.IsMachine(imported) && !rules.IsMachine(pkg.ImportPath) {
				problem = whyMachine
			}
			if problem != "" {
				broken = append(broken, fmt.Sprintf("%s must not import %s: %s", pkg.ImportPath, imported, problem))
			}
		}
	}
	for _, closed := range rules.Closed {
		broken = append(broken, closed.check(packages, rules.Closed)...)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

const whyMachine = "only tests and measurements run it, and users would get it"

// IsMachine reports whether the package lies in one of the Machines.
func (r Rules) IsMachine(importPath string) bool {
	return slices.ContainsFunc(r.Machines, func(path string) bool { return within(importPath, join(path)) })
}

// judge returns why the room may not import the path, or "".
func (r Rules) judge(room Room, imported string) string {
	if within(imported, Module) {
		target, known := r.roomOf(imported)
		if !known || target.Path == room.Path || slices.Contains(room.May, target.Path) {
			return "" // an unknown room is reported once, for the package itself
		}
		return room.Why
	}
	for _, library := range r.Libraries {
		if within(imported, library.Path) && !slices.Contains(library.Rooms, room.Path) {
			return library.Why
		}
	}
	return ""
}

// roomOf finds the room with the longest path that holds the package.
func (r Rules) roomOf(importPath string) (best Room, known bool) {
	for _, room := range r.Rooms {
		path := join(room.Path)
		holds := importPath == path || room.Path != "" && within(importPath, path)
		if holds && (!known || len(room.Path) > len(best.Path)) {
			best, known = room, true
		}
	}
	return best, known
}

// holds reports whether the package is the module's, and not that of a module
// that lies below it.
func (c Closed) holds(importPath string, all []Closed) bool {
	for _, other := range all {
		if len(other.Path) > len(c.Path) && within(importPath, join(other.Path)) {
			return false
		}
	}
	return within(importPath, join(c.Path))
}

// check walks everything that the module's packages reach.
func (c Closed) check(packages []Package, all []Closed) []string {
	byPath := make(map[string]Package, len(packages))
	var queue []string
	for _, pkg := range packages {
		byPath[pkg.ImportPath] = pkg
		if c.holds(pkg.ImportPath, all) {
			queue = append(queue, pkg.ImportPath)
		}
	}
	var broken []string
	seen := map[string]bool{}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] || byPath[path].Standard {
			continue
		}
		seen[path] = true
		allowed := within(path, Module) || slices.ContainsFunc(c.May, func(may string) bool { return within(path, may) })
		if !allowed {
			broken = append(broken, fmt.Sprintf("%s must not inherit %s: %s", c.Path, path, c.Why))
			continue // what it imports in turn is not news
		}
		queue = append(queue, byPath[path].Imports...)
	}
	return broken
}

// within reports whether path is parent or lies below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func join(roomPath string) string {
	if roomPath == "" {
		return Module
	}
	return Module + "/" + roomPath
}
