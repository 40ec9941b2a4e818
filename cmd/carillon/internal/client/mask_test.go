package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// schema is a part of an OpenAPI schema.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	WriteOnly  bool               `json:"writeOnly"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
}

// openapi is the document that the client is generated from.
type openapi struct {
	Paths map[string]map[string]struct {
		OperationID string
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

// readable are write-only fields that are no secrets.
var readable = map[string]bool{"ScheduleWrite.after": true}

var secretly = regexp.MustCompile(`(?i)(password|secret|token)$`)

// sample fills every field of a schema. Texts that are secrets begin with "leak", and the
// others with "seen".
func (o *openapi) sample(s *schema, place string, secret bool, depth int) any {
	if s.Ref != "" {
		return o.sample(o.Components.Schemas[path.Base(s.Ref)], path.Base(s.Ref), secret, depth+1)
	}
	switch {
	case depth > 12: // schemas that contain themselves
		return nil
	case s.Properties != nil:
		out := map[string]any{}
		for name, field := range s.Properties {
			here := place + "." + name
			out[name] = o.sample(field, here, secret || name == "secrets" || secretly.MatchString(name) || field.WriteOnly && !readable[here], depth+1)
		}
		return out
	case s.Items != nil:
		return []any{o.sample(s.Items, place, secret, depth+1)}
	case s.Type == "string" && secret:
		return "leak " + place
	case s.Type == "string":
		return "seen " + place
	}
	return true
}

func texts(v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			texts(field, found)
		}
	case []any:
		for _, item := range v {
			texts(item, found)
		}
	case string:
		found[v] = true
	}
}

// In the body of each operation the secrets are masked, and the other fields stay. Documents
// of a batch have a free schema. Each body is tried as such a document, too.
func TestBodiesOfAllOperationsAreMasked(t *testing.T) {
	raw, err := os.ReadFile("../../../../docs/openapi.json")
	require.NoError(t, err)
	var o openapi
	require.NoError(t, json.Unmarshal(raw, &o))
	bodies, secrets := 0, map[string]bool{}
	for _, methods := range o.Paths {
		for _, op := range methods {
			content, has := op.RequestBody.Content["application/json"]
			require.Equal(t, len(op.RequestBody.Content) > 0, has, "%s: a body that is not JSON is shown as ***", op.OperationID)
			if !has {
				continue
			}
			bodies++
			body := o.sample(content.Schema, op.OperationID, false, 0)
			want := map[string]bool{}
			texts(body, want)
			for _, sent := range []any{body, map[string]any{"documents": []any{map[string]any{"kind": "X", "spec": body}}}} {
				plain, err := json.Marshal(sent)
				require.NoError(t, err)
				shown := maskBody(plain)
				require.NotContains(t, shown, "leak", op.OperationID)
				for text := range want {
					if strings.HasPrefix(text, "seen") {
						require.Contains(t, shown, text, op.OperationID)
					} else if strings.HasPrefix(text, "leak") {
						secrets[text] = true
					}
				}
			}
		}
	}
	require.Greater(t, bodies, 50)
	for _, known := range []string{"ConnectionSecrets.password", "AlertChannelSecrets.url", "AlertWrite.webhookSecret", "CreateUserInputBody.password"} {
		require.Contains(t, secrets, "leak "+known)
	}
}

// A batch of documents is shown without the values below secrets.
func TestTraceMasksDocuments(t *testing.T) {
	var trace strings.Builder
	c := ask(t, nil, func(f string, a ...any) { fmt.Fprintf(&trace, f+"\n", a...) },
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	document := json.RawMessage(`{"kind":"Connection","spec":{"url":"amqp://b","secrets":{"password":"newhush","certs":[{"pem":"hush"}],"old":""},` +
		`"headers":{"Authorization":"Bearer hush","X-Api-Key":"hush"},"input":"{\"token\":\"hush\",\"n\":12345678901234567890}","routingKey":"order"}}`)
	_, err := c.PlanDocuments(t.Context(), apiclient.DocumentBatch{Documents: []any{document}})
	require.NoError(t, err)
	require.NotContains(t, trace.String(), "hush")
	for _, part := range []string{`"password":"***"`, `"old":""`, `"url":"amqp://b"`, `"routingKey":"order"`, "12345678901234567890"} {
		require.Contains(t, trace.String(), part)
	}
	for _, text := range []string{"password=hush", `{"a":`, `{} {"password":"hush"}`} {
		require.Equal(t, "***", maskBody([]byte(text)))
	}
}
