package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// hostileBodies are large bodies of an operation that a wrong reader pays dearly for.
func hostileBodies(doc *huma.OpenAPI, schema *huma.Schema, size int) map[string]string {
	fit := func(before, part, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(part, max(1, (size-len(before)-len(after))/len(part))), ",") + after
	}
	members := strings.Builder{}
	for i := 0; members.Len() < size-20; i++ {
		fmt.Fprintf(&members, `,"m%d":0`, i)
	}
	out := map[string]string{
		"unknown members":     "{" + members.String()[1:] + "}",
		"objects in an array": fit("[", "{},", "]"),
		"one member again":    fit("{", `"name":0,`, "}"),
		"deep":                strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"a long text":         fit(`{"name":"`, "x", `"}`),
		"bytes of no text":    fit(`{"name":"`, "\xbc\xe0", `"}`),
	}
	for schema.Ref != "" {
		schema = doc.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	for name, of := range schema.Properties {
		for of.Ref != "" {
			of = doc.Components.Schemas.SchemaFromRef(of.Ref)
		}
		switch of.Type {
		case huma.TypeArray:
			out["empty objects in "+name] = fit(`{"`+name+`":[`, "{},", "]}")
		case huma.TypeObject:
			out["unknown members of "+name] = `{"` + name + `":{` + members.String()[1:] + "}}"
		case "":
			out["any value in "+name] = fit(`{"`+name+`":[`, "{},", "]}")
			out["any value in "+name+", numbers beyond 64 bits"] = fit(`{"`+name+`":[`, "1e999,", "1]}")
		}
	}
	return out
}

// Each operation refuses large bodies without building them. A request allocates a small
// multiple of its bytes.
func TestHostileBodiesCostLittle(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	described := New(describedDeps())
	doc := described.Document()
	const size = 200 << 10
	seen := 0
	operations(doc, func(method, path string, op *huma.Operation) {
		if op.RequestBody == nil {
			return
		}
		public := op.Extensions["x-policy"] == "public"
		who := "acme/admin"
		switch {
		case public:
			who = ""
		case op.Extensions["x-policy"] == "platform_admin":
			who = "platform"
		}
		address := fill(path, own, own, -1) + matrixQuery[path]
		for name, body := range hostileBodies(doc, op.RequestBody.Content["application/json"].Schema, size) {
			seen++
			w.call(who, method, address, "{}") // what is made once, and the token
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			a := w.call(who, method, address, body)
			runtime.ReadMemStats(&after)
			where := fmt.Sprintf("%s %s, %s: %d %.300s", method, path, name, a.status, a.body)
			if public {
				require.Equal(t, http.StatusRequestEntityTooLarge, a.status, where)
			}
			require.Less(t, a.status, 500, where)
			most := uint64(20 * size)
			if strings.HasPrefix(name, "any value") {
				most = 80 * size // it is held against the handler's schema, two at a time (jsonschema)
			}
			require.Less(t, after.TotalAlloc-before.TotalAlloc, most, where)
			if a.status >= 300 {
				var p web.Problem
				require.NoError(t, json.Unmarshal(a.body, &p), where)
				require.LessOrEqual(t, len(p.Errors), 20, where)
				require.Less(t, len(a.body), 20<<10, where)
			}
		}
	})
	require.Greater(t, seen, 300)
}
