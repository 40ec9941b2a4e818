// Package licenses answers: whose work is in this binary, and under which terms?
//
// licenses.json is made by the program in gen from the modules that the command
// is built of, and from the packages that the pages are built of.
package licenses

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:generate go run ./gen

//go:embed licenses.json
var raw []byte

// File is what licenses.json holds.
type File struct {
	Components []Component `json:"components"`
	// Texts are the licences' and notices' own words, each of them once.
	Texts []string `json:"texts"`
}

// Component is a foreign part of the binary.
type Component struct {
	Kind    string `json:"kind"` // "go", or "npm" for what the pages are made of
	Name    string `json:"name"`
	Version string `json:"version"`
	// License is an SPDX expression.
	License string `json:"license"`
	// Texts are numbers in File.Texts; empty: the package brings no text of its
	// own, and License is what it declares.
	Texts []int `json:"texts,omitempty"`
}

// Read returns what the binary was built with.
func Read() (File, error) {
	var f File
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("read licences: %w", err)
	}
	return f, nil
}
