package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

type kindInput struct {
	Kind string `path:"kind" maxLength:"64" doc:"Name of the kind, as in the field kind"`
}

type schemaOutput struct{ Body json.RawMessage }

// schema answers with the schema of a kind, as editors use it.
func (a *api) schema(_ context.Context, _ auth.Identity, in *kindInput) (*schemaOutput, error) {
	for _, k := range a.server.Kinds().List() {
		if k.Name == in.Kind {
			raw, err := schemaOf(a.server.Kinds().Registry(), &k)
			return &schemaOutput{raw}, err
		}
	}
	return nil, domain.Errorf(domain.CodeNotFound, "there is no kind %q", in.Kind)
}

const components = "#/components/schemas/"

// schemaOf is a JSON schema with all schemas that it refers to.
func schemaOf(r huma.Registry, k *web.DocumentKind) (json.RawMessage, error) {
	write := *resolve(r, k.Write)
	write.Properties = maps.Clone(write.Properties)
	write.Required = append([]string{"kind"}, write.Required...)
	defs := map[string]*huma.Schema{}
	collect(r, &write, defs)
	raw, err := json.Marshal(&write)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	out["$schema"], out["title"] = "https://json-schema.org/draft/2020-12/schema", k.Name
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	raw, err = json.Marshal(out)
	return bytes.ReplaceAll(raw, []byte(`"`+components), []byte(`"#/$defs/`)), err
}

func resolve(r huma.Registry, s *huma.Schema) *huma.Schema {
	if s.Ref == "" {
		return s
	}
	return r.SchemaFromRef(s.Ref)
}

// collect adds the schemas that s refers to, by name.
func collect(r huma.Registry, s *huma.Schema, defs map[string]*huma.Schema) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		name := s.Ref[len(components):]
		if defs[name] != nil {
			return
		}
		defs[name] = r.SchemaFromRef(s.Ref)
		collect(r, defs[name], defs)
		return
	}
	collect(r, s.Items, defs)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		collect(r, s.Properties[name], defs)
	}
	if values, is := s.AdditionalProperties.(*huma.Schema); is {
		collect(r, values, defs)
	}
	for _, list := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, one := range list {
			collect(r, one, defs)
		}
	}
}
