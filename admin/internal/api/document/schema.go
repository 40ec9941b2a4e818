package document

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// schemas are the schemas of a kind: of a document in answers, of one that is written, and of
// a page of a list.
type schemas struct{ answer, write, page, version, versions *huma.Schema }

// Describe adds the schemas of a kind with other operations to the OpenAPI document: of a
// document that is written, and of a page of a list.
func Describe(r huma.Registry, k *resource.Kind) (write, page *huma.Schema) {
	s := describe(r, k, false)
	return s.write, s.page
}

// text is the schema of a text. The kinds of formats are those of OpenAPI.
func text(about, format string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: format, Description: about}
}

func fixed(about, value string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: about, Enum: []any{value}}
}

func object(required []string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Properties: properties, Required: required, AdditionalProperties: false}
}

// component adds a schema to the document by its name and refers to it.
func component(r huma.Registry, name string, s *huma.Schema) *huma.Schema {
	r.Map()[name] = s
	s.PrecomputeMessages()
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// describe adds the schemas of a kind to the OpenAPI document. used: others can refer to a document.
func describe(r huma.Registry, k *resource.Kind, used bool) schemas {
	spec := r.Schema(k.SpecType, true, k.Component+"Spec")
	spec.Description = "Contents of the document"
	number := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: "Version of the document, from 1. Each edit adds one"}
	labels := func() *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Description: "Labels of the document, at most 32",
			AdditionalProperties: &huma.Schema{Type: huma.TypeString},
		}
	}
	known := map[string]*huma.Schema{
		"apiVersion": fixed("Version of the form of this document", resource.APIVersion), "kind": fixed("Kind of the document", k.Name),
		"id": text("Id of the document, a decimal string", ""), "name": text("Name, unique among the tenant's documents of this kind", ""),
		"labels": labels(), "version": number, "spec": spec,
		"createdAt": text("Time of creation", "date-time"), "updatedAt": text("Time of the last edit", "date-time"),
		"problem":   text("Why the contents cannot be read; absent: they can", ""),
		"createdBy": text("Creator", ""), "updatedBy": text("Author of the last edit", ""),
	}
	required := []string{"apiVersion", "kind", "id", "name", "version", "spec", "createdAt", "updatedAt", "createdBy", "updatedBy"}
	if len(k.Secrets) > 0 {
		known["secrets"] = component(r, k.Component+"Fingerprints", secretsOf(k, false))
		known["secrets"].Description = "Fingerprints of the secrets that the document has. A secret itself is never shown"
		required = append(required, "secrets")
	}
	if used {
		known["usedBy"] = r.Schema(reflect.TypeFor[DocumentUsers](), true, "DocumentUsers")
		known["usedBy"].Description = "Jobs and documents that refer to this one. Absent in lists and in answers to writes"
	}
	if k.StatusType != nil {
		known["status"] = r.Schema(k.StatusType, true, k.Component+"Status")
		known["status"].Description = "What the server adds to the contents"
		required = append(required, "status")
	}
	var out schemas
	out.answer = component(r, k.Component, object(required, known))

	written := map[string]*huma.Schema{}
	for name, s := range known {
		switch name {
		case "name", "spec", "apiVersion", "kind", "labels", "secrets":
			written[name] = s
		default:
			same := *s
			same.Description = "Ignored, so that an answer can be written"
			written[name] = &same
		}
	}
	if len(k.Secrets) > 0 {
		written["secrets"] = component(r, k.Component+"Secrets", secretsOf(k, true))
		written["secrets"].Description = "Secrets by name. A secret that is left out stays, and an empty one is removed. A fingerprint stands for the secret that the document has"
	}
	one, most := 1, 128
	written["name"] = &huma.Schema{Type: huma.TypeString, MinLength: &one, MaxLength: &most, Description: known["name"].Description + ". It must not look like an id"}
	out.write = component(r, k.Component+"Write", object([]string{"name", "spec"}, written))

	total := *r.Schema(reflect.TypeFor[web.Total](), true, "Total")
	total.Description = "With total=true: how many items all pages have"
	out.page = component(r, "Page"+k.Component, page(&huma.Schema{Ref: out.answer.Ref}, &total))
	if k.Versioned {
		out.version = component(r, k.Component+"Version", object([]string{"version", "createdAt", "createdBy", "name", "spec"}, map[string]*huma.Schema{
			"version": number, "createdAt": text("Time of this version", "date-time"), "createdBy": text("Author of this version", ""), "name": text("Name at this version", ""), "labels": labels(), "spec": spec,
		}))
		out.versions = component(r, "Page"+k.Component+"Version", page(&huma.Schema{Ref: out.version.Ref}, nil))
	}
	return out
}

func secretsOf(k *resource.Kind, write bool) *huma.Schema {
	s := object(nil, map[string]*huma.Schema{})
	most := resource.MaxSecretLength
	for _, f := range k.Secrets {
		s.Properties[f.Name] = &huma.Schema{Type: huma.TypeString, Description: f.About}
		if write {
			s.Properties[f.Name].MaxLength, s.Properties[f.Name].WriteOnly = &most, true
		}
	}
	return s
}

// page is the schema of a list. total is nil for lists that are not counted.
func page(item, total *huma.Schema) *huma.Schema {
	properties := map[string]*huma.Schema{
		"items":      {Type: huma.TypeArray, Items: item, Description: "The items of this page, in the order of the list"},
		"nextCursor": {Type: huma.TypeString, Nullable: true, Description: "Give it as cursor to get what follows; null on the last page"},
	}
	if total != nil {
		properties["total"] = total
	}
	return object([]string{"items", "nextCursor"}, properties)
}

// DeletedDocument is a document that can be restored.
type DeletedDocument struct {
	ID        string `json:"id" doc:"Id of the document, a decimal string"`
	Name      string `json:"name" doc:"Its name"`
	Version   int64  `json:"version" doc:"Its version when it was deleted"`
	DeletedAt string `json:"deletedAt" format:"date-time" doc:"Time of its deletion"`
	DeletedBy string `json:"deletedBy" doc:"Author of its deletion"`
}
