package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

const components = "#/components/schemas/"

// AnyJSON is the schema of an answer that is a JSON schema.
var AnyJSON = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "A JSON schema"}

// JSONSchema is the JSON schema of documents of a kind, with all schemas that it refers to.
func (k *Kinds) JSONSchema(kind *DocumentKind) (json.RawMessage, error) {
	r := k.Registry(kind.Kind)
	write := *resolve(r, kind.Write)
	write.Properties = maps.Clone(write.Properties)
	write.Properties["tenant"] = &huma.Schema{Type: huma.TypeString, Description: "Name of the document's tenant, in files of several tenants"}
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
	out["$schema"], out["title"] = "https://json-schema.org/draft/2020-12/schema", kind.Name
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
