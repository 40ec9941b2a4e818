package document

import (
	"bytes"
	"encoding/json"
)

// AnyKind is the name of the file with the schema of AnyKindSchema.
const AnyKind = "document.json"

// AnyKindSchema is a JSON schema that picks the schema of a document by its kind. The schema of
// each kind is beside it, in KIND.json.
func AnyKindSchema(kinds []string) ([]byte, error) {
	choices := []any{}
	for _, kind := range kinds {
		choices = append(choices, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"kind": map[string]any{"const": kind}}},
			"then": map[string]any{"$ref": kind + ".json"},
		})
	}
	raw, err := json.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": []string{"kind"},
		"properties": map[string]any{"kind": map[string]any{"enum": kinds}}, "allOf": choices,
	})
	if err != nil {
		return nil, err
	}
	return SchemaFile(raw)
}

// SchemaFile is a JSON schema as it stands in a file.
func SchemaFile(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, bytes.TrimSpace(raw), "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}
