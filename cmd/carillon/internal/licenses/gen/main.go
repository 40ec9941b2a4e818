// Command gen writes licenses.json and the NOTICE file of the repository. It
// reads what is there already, the module cache and web-ui/node_modules, and asks
// nobody.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/licenses"
)

const own = "github.com/carillon-sched/carillon"

// platforms are those whose modules count: what a binary is built of differs
// from system to system.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("licenses: ", err)
	}
}

func run() error {
	root, err := output(nil, "go", "list", "-m", "-f", "{{.Dir}}", own)
	if err != nil {
		return err
	}
	g := &generator{root: strings.TrimSpace(string(root)), numbers: map[string]int{}}
	if err := g.goModules(); err != nil {
		return err
	}
	if err := g.npmPackages(); err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(g.file); err != nil {
		return err
	}
	if err := os.WriteFile("licenses.json", b.Bytes(), 0o644); err != nil { //nolint:gosec // a source file
		return err
	}
	return os.WriteFile(filepath.Join(g.root, "NOTICE"), g.notice(), 0o644) //nolint:gosec // a source file
}

type generator struct {
	root    string
	file    licenses.File
	numbers map[string]int // of texts
}

// add notes a component with the texts of a folder.
func (g *generator) add(c licenses.Component, dir string) error {
	names, err := textFiles(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		text := clean(string(raw))
		if c.License == "" {
			c.License = classify(text)
		}
		n, known := g.numbers[text]
		if !known {
			n = len(g.file.Texts)
			g.numbers[text] = n
			g.file.Texts = append(g.file.Texts, text)
		}
		c.Texts = append(c.Texts, n)
	}
	if c.License == "" {
		return fmt.Errorf("%s %s: its licence is not known (%q)", c.Kind, c.Name, names)
	}
	g.file.Components = append(g.file.Components, c)
	return nil
}

// textFiles are the names of licences and notices in a folder, licences first.
func textFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, prefix := range []string{"LICEN", "COPYING", "UNLICENSE", "NOTICE"} {
		for _, e := range entries {
			upper := strings.ToUpper(e.Name())
			if e.Type().IsRegular() && strings.HasPrefix(upper, prefix) && !strings.HasSuffix(upper, ".GO") && !strings.HasSuffix(upper, ".JS") {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// clean makes texts equal that differ in the ends of lines only.
func clean(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// classify names a licence by words that only it has; "" for an unknown one.
func classify(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	has := func(s string) bool { return strings.Contains(words, s) }
	switch {
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License") && has("2.0"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Permission to use, copy, modify, and/or distribute this software"), has("Permission to use, copy, modify, and distribute this software"):
		return "ISC"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors may not")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("free and unencumbered software released into the public domain"):
		return "Unlicense"
	}
	return ""
}

// goModules adds Go itself and the modules that the command is built of.
func (g *generator) goModules() error {
	version, err := output(nil, "go", "list", "-m", "-f", "{{.GoVersion}}", own)
	if err != nil {
		return err
	}
	goroot, err := output(nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if err := g.add(licenses.Component{Kind: "go", Name: "std", Version: strings.TrimSpace(string(version))}, strings.TrimSpace(string(goroot))); err != nil {
		return err
	}
	found := map[string]string{} // folder by "path version"
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		list, err := output([]string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0", "GOFLAGS=-tags=nomsgpack"},
			"go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}", own+"/cmd/carillon")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(list)) {
			module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t")
			if path, _, _ := strings.Cut(module, " "); ok && path != own && !strings.HasPrefix(path, own+"/") {
				found[module] = dir
			}
		}
	}
	for _, module := range sortedKeys(found) {
		path, version, _ := strings.Cut(module, " ")
		if err := g.add(licenses.Component{Kind: "go", Name: path, Version: version}, found[module]); err != nil {
			return err
		}
	}
	return nil
}

// npmPackages adds what the pages need at run time, by the lock file.
func (g *generator) npmPackages() error {
	raw, err := os.ReadFile(filepath.Join(g.root, "web-ui", "package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License                 string
			Dev, DevOptional, Optional, Peer bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, path := range sortedKeys(lock.Packages) {
		p := lock.Packages[path]
		at := strings.LastIndex(path, "node_modules/")
		if at < 0 || p.Dev || p.DevOptional {
			continue
		}
		c := licenses.Component{Kind: "npm", Name: path[at+len("node_modules/"):], Version: p.Version, License: p.License}
		if seen[c.Name+" "+c.Version] {
			continue
		}
		seen[c.Name+" "+c.Version] = true
		if err := g.add(c, filepath.Join(g.root, "web-ui", path)); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) notice() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "Carillon\n\nCarillon is licensed under the Apache License, Version 2.0; see LICENSE.\n\n"+
		"Its binary holds the works below, under their own licences. Their texts are\n"+
		"in cmd/carillon/internal/licenses/licenses.json, and `carillon licenses` prints\n"+
		"them. This file is generated by `make generate`.")
	for _, kind := range []struct{ name, title string }{{"go", "Go modules"}, {"npm", "Packages in the web pages"}} {
		fmt.Fprintf(&b, "\n%s\n\n", kind.title)
		for _, c := range g.file.Components {
			if c.Kind == kind.name {
				fmt.Fprintf(&b, "  %s %s  %s\n", c.Name, c.Version, c.License)
			}
		}
	}
	return b.Bytes()
}

func output(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
