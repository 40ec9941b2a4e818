// Package resource answers: what is a named, versioned document of a tenant?
//
// A Kind describes one sort of documents: its names, its bounds, its rights, its type and its
// rules. Documents does the same for each kind: it checks, seals secrets, compares versions and
// asks a Store. All kinds have one form: apiVersion, kind, name, labels, spec, and secrets that
// are written and never read.
package resource

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// APIVersion is the version of the form of documents that this server writes.
const APIVersion = "carillon/v1"

// MaxSecretLength is the most bytes of one secret of a document.
const MaxSecretLength = 32 << 10

// Meta is what all documents have.
type Meta struct {
	ID     int64
	Tenant domain.TenantID
	// Name is unique among the documents of its kind and tenant.
	Name   string
	Labels map[string]string
	// Version is 1 at first and grows by one with each edit.
	Version int64
	// Marks names the secrets that it has. A mark is a keyed fingerprint of the secret.
	Marks map[string]string
	// Sealed has the secrets by name, sealed. Empty: there are none.
	Sealed               []byte
	CreatedAt, UpdatedAt time.Time
	CreatedBy, UpdatedBy string
	// Problem is why its contents cannot be read; they are empty then.
	Problem string
}

// Document is a document of a kind with specs of type S.
type Document[S any] struct {
	Meta
	Spec S
}

// Row is a document as a store keeps it: the spec is JSON.
type Row struct {
	Meta
	Spec json.RawMessage
}

// envelope is the text that a store keeps beside id, name, version and times.
type envelope struct {
	APIVersion string            `json:"apiVersion"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
	Marks      map[string]string `json:"marks,omitempty"`
	Spec       json.RawMessage   `json:"spec"`
}

// Text is the row's stored text.
func (r *Row) Text() (string, error) {
	text, err := json.Marshal(envelope{APIVersion, r.Name, r.Labels, r.Marks, r.Spec})
	if err != nil {
		return "", fmt.Errorf("encode document: %w", err)
	}
	return string(text), nil
}

// ReadText reads a stored text into the row. A row without a name, such as a version, gets that
// of the text. older converts texts of before the mechanism.
func (r *Row) ReadText(text []byte, older func([]byte) (Row, error)) error {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("decode document %d: %w", r.ID, err)
	}
	if e.APIVersion == "" && older != nil {
		was, err := older(text)
		if err != nil {
			return fmt.Errorf("convert document %d: %w", r.ID, err)
		}
		r.Labels, r.Marks, r.Spec = was.Labels, was.Marks, was.Spec
		if r.Name == "" {
			r.Name = e.Name
		}
		return nil
	}
	if r.Name == "" {
		r.Name = e.Name
	}
	r.Labels, r.Marks, r.Spec = e.Labels, e.Marks, e.Spec
	return nil
}
