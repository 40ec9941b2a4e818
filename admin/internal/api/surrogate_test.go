package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// member is one member of a body somewhere.
type member struct {
	at   string // its location in errors
	body func(value string) string
	raw  bool // any JSON
}

// membersOf are the texts and raw values of a schema. Lists have one element.
func membersOf(doc *huma.OpenAPI, schema *huma.Schema, at string, body func(string) string, depth int) (out []member) {
	for schema.Ref != "" {
		schema = doc.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	if len(schema.OneOf) > 0 {
		for _, one := range schema.OneOf {
			out = append(out, membersOf(doc, one, at, body, depth)...)
		}
		return out
	}
	switch {
	case depth > 6:
	case schema.Type == huma.TypeString, schema.Type == "":
		out = append(out, member{at, body, schema.Type == ""})
	case schema.Type == huma.TypeArray:
		out = membersOf(doc, schema.Items, at+"[0]", func(v string) string { return body("[" + v + "]") }, depth+1)
	case schema.Type == huma.TypeObject:
		inside := func(name string, of *huma.Schema) {
			out = append(out, membersOf(doc, of, at+"."+name, func(v string) string { return body(fmt.Sprintf(`{%q:%s}`, name, v)) }, depth+1)...)
		}
		for name, of := range schema.Properties {
			inside(name, of)
		}
		if more, ok := schema.AdditionalProperties.(*huma.Schema); ok {
			inside("any", more)
			out = append(out, member{at, func(v string) string { return body("{" + v + `:"x"}`) }, false})
		}
	}
	return out
}

// TestHalvesOfSurrogatePairsAreRefused: each text of each body is stored as it came, or
// refused. Raw JSON keeps its escapes.
func TestHalvesOfSurrogatePairsAreRefused(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	described := New(describedDeps())
	doc := described.Document()
	texts, raws := 0, 0
	operations(doc, func(method, path string, op *huma.Operation) {
		if op.RequestBody == nil {
			return
		}
		who := map[any]string{"public": "", "platform_admin": "platform"}
		user, known := who[op.Extensions["x-policy"]]
		if !known {
			user = "acme/admin"
		}
		for _, m := range membersOf(doc, op.RequestBody.Content["application/json"].Schema, "body", func(v string) string { return v }, 0) {
			a := w.call(user, method, fill(path, own, own, -1)+matrixQuery[path], m.body(`"x\udfff"`))
			where := fmt.Sprintf("%s %s %s: %d %.300s", method, path, m.at, a.status, a.body)
			require.Less(t, a.status, 500, where)
			var p web.Problem
			if a.status >= 300 {
				require.NoError(t, json.Unmarshal(a.body, &p), where)
			}
			refused := slices.ContainsFunc(p.Errors, func(e web.ProblemItem) bool {
				return e.Location == m.at && strings.Contains(e.Message, "surrogate pair")
			})
			if m.raw {
				raws++
				require.False(t, refused, where)
				continue
			}
			texts++
			require.Equal(t, http.StatusUnprocessableEntity, a.status, where)
			require.True(t, refused, where)
		}
	})
	require.Greater(t, texts, 150)
	require.Greater(t, raws, 3)
}
