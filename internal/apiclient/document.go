package apiclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Document is a document of any kind, without the type of its spec.
type Document struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	ID         string            `json:"id,omitempty"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
	Version    int64             `json:"version,omitempty"`
	Spec       map[string]any    `json:"spec"`
	Secrets    map[string]string `json:"secrets,omitempty"`
	Status     map[string]any    `json:"status,omitempty"`
	UsedBy     *DocumentUsers    `json:"usedBy,omitempty"`
	UpdatedAt  time.Time         `json:"updatedAt,omitzero"`
	UpdatedBy  string            `json:"updatedBy,omitempty"`
	CreatedAt  time.Time         `json:"createdAt,omitzero"`
	CreatedBy  string            `json:"createdBy,omitempty"`
	Executor   string            `json:"executor,omitempty"` // of a deleted job
	DeletedAt  time.Time         `json:"deletedAt,omitzero"`
	DeletedBy  string            `json:"deletedBy,omitempty"`
}

// Documents are the operations that all kinds of documents have, for the kind at a path such
// as connections.
type Documents struct {
	Client *Client
	Path   string
	// Query narrows lists; nil: it does not.
	Query url.Values
}

func (d Documents) at(more string) string { return "/api/v1/" + d.Path + more }

func (d Documents) one(id, more string) string { return d.at("/" + url.PathEscape(id) + more) }

func askDocument[T any](ctx context.Context, d Documents, method, path string, body any, edits []Edit) (Doc[T], error) {
	return ask[T](ctx, d.Client, &Request{Method: method, Path: path, Query: url.Values{}, Header: http.Header{}, Body: body}, edits)
}

// List lists all documents by name.
func (d Documents) List(ctx context.Context) ([]Doc[Document], error) {
	return follow[Document](0, func(page Edit) (Doc[Page[Document]], error) {
		narrow := func(r *Request) {
			for name := range d.Query {
				r.Query.Set(name, d.Query.Get(name))
			}
		}
		return askDocument[Page[Document]](ctx, d, http.MethodGet, d.at(""), nil, []Edit{narrow, page})
	})
}

// Versions lists the versions of a document, the newest first.
func (d Documents) Versions(ctx context.Context, id string) ([]Doc[Document], error) {
	return follow[Document](0, func(page Edit) (Doc[Page[Document]], error) {
		return askDocument[Page[Document]](ctx, d, http.MethodGet, d.one(id, "/versions"), nil, []Edit{page})
	})
}

// Version reads a version of a document.
func (d Documents) Version(ctx context.Context, id string, version int64) (Doc[Document], error) {
	return askDocument[Document](ctx, d, http.MethodGet, d.one(id, "/versions/"+strconv.FormatInt(version, 10)), nil, nil)
}

// Get reads a document by its id or name.
func (d Documents) Get(ctx context.Context, id string, edits ...Edit) (Doc[Document], error) {
	return askDocument[Document](ctx, d, http.MethodGet, d.one(id, ""), nil, edits)
}

// Create writes a new document.
func (d Documents) Create(ctx context.Context, body any) (Doc[Document], error) {
	return askDocument[Document](ctx, d, http.MethodPost, d.at(""), body, nil)
}

// Replace writes a document in place of a version. match is the header If-Match.
func (d Documents) Replace(ctx context.Context, id, match string, body any) (Doc[Document], error) {
	return askDocument[Document](ctx, d, http.MethodPut, d.one(id, ""), body, []Edit{Header("If-Match", match)})
}

// Delete deletes a document.
func (d Documents) Delete(ctx context.Context, id string) (Doc[None], error) {
	return askDocument[None](ctx, d, http.MethodDelete, d.one(id, ""), nil, nil)
}

// Deleted lists deleted documents, the last deleted first.
func (d Documents) Deleted(ctx context.Context) ([]Doc[Document], error) {
	return follow[Document](0, func(page Edit) (Doc[Page[Document]], error) {
		return askDocument[Page[Document]](ctx, d, http.MethodGet, "/api/v1/deleted-"+d.Path, nil, []Edit{page})
	})
}

// Restore brings a deleted document back.
func (d Documents) Restore(ctx context.Context, id string) (Doc[Document], error) {
	return askDocument[Document](ctx, d, http.MethodPost, d.one(id, "/restore"), nil, nil)
}
