package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// describedAnswers holds every answer of these tests against the document that
// clients are made from. The world's handler is behind one, so that there is no
// call that is not checked.
type describedAnswers struct {
	next http.Handler
	fail func(format string, args ...any)
}

// ServeHTTP sends the answer on as it is written, and then looks at it.
func (d describedAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &seenAnswer{ResponseWriter: w}
	d.next.ServeHTTP(seen, r)
	if r.Context().Err() != nil {
		return // half an answer, to nobody
	}
	if why := openAPI(d.fail).wrong(r.Method, r.URL.EscapedPath(), seen); why != "" {
		d.fail("%s %s: the answer is not as docs/openapi.json says: %s\n%d %s", r.Method, r.URL.Path, why, seen.status, seen.body.Bytes())
	}
}

type seenAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (s *seenAnswer) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seenAnswer) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	s.body.Write(p)
	return s.ResponseWriter.Write(p)
}

func (s *seenAnswer) Flush() {
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *seenAnswer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// described is the document, ready to judge answers.
type described struct {
	paths map[string]map[string]describedOperation

	mu      sync.Mutex
	schemas *jsonschema.Compiler          // guarded by mu
	known   map[string]*jsonschema.Schema // guarded by mu; by JSON pointer
}

type describedOperation struct {
	Responses map[string]struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"responses"`
}

var theDocument struct {
	once sync.Once
	*described
}

func openAPI(fail func(format string, args ...any)) *described {
	theDocument.once.Do(func() {
		raw, err := describedAPI()
		if err != nil {
			fail("document: %s", err)
			return
		}
		var read struct {
			Paths map[string]map[string]describedOperation `json:"paths"`
		}
		if err := json.Unmarshal(raw, &read); err != nil {
			fail("document: %s", err)
			return
		}
		all, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			fail("document: %s", err)
			return
		}
		d := &described{paths: read.Paths, schemas: jsonschema.NewCompiler(), known: map[string]*jsonschema.Schema{}}
		d.schemas.AssertFormat()
		if err := d.schemas.AddResource("document.json", all); err != nil {
			fail("document: %s", err)
			return
		}
		theDocument.described = d
	})
	return theDocument.described
}

// wrong says what is not as the document has it; empty: all is.
func (d *described) wrong(method, path string, a *seenAnswer) string {
	if !strings.HasPrefix(path, web.Base+"/") {
		return "" // pages, probes, metrics, the document itself
	}
	if a.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(&a.body)
		if err != nil {
			return err.Error()
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			return err.Error()
		}
		a.body = *bytes.NewBuffer(plain)
	}
	mediaType, _, err := mime.ParseMediaType(a.Header().Get("Content-Type"))
	if err != nil && a.body.Len() > 0 {
		return "no content type"
	}
	template, op := d.operation(method, path)
	if template == "" {
		// Nothing is there, or not in the document: only a problem can come.
		if a.status < http.StatusBadRequest {
			return "an answer of an operation that is not described"
		}
		return d.misfit("#/components/schemas/Problem", a)
	}
	status := strconv.Itoa(a.status)
	response, ok := op.Responses[status]
	if !ok {
		return "the status is not declared"
	}
	if len(response.Content) == 0 {
		if a.body.Len() > 0 {
			return "it has a body"
		}
		return ""
	}
	if _, ok := response.Content[mediaType]; !ok {
		return "the content type " + mediaType + " is not declared"
	}
	if !strings.HasSuffix(mediaType, "json") {
		return ""
	}
	return d.misfit("#/paths/"+token(template)+"/"+strings.ToLower(method)+"/responses/"+status+"/content/"+token(mediaType)+"/schema", a)
}

func token(s string) string {
	return url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1"))
}

func (d *described) misfit(pointer string, a *seenAnswer) string {
	d.mu.Lock()
	schema := d.known[pointer]
	if schema == nil {
		var err error
		if schema, err = d.schemas.Compile("document.json" + pointer); err != nil {
			d.mu.Unlock()
			return err.Error()
		}
		d.known[pointer] = schema
	}
	d.mu.Unlock()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body.Bytes()))
	if err != nil {
		return err.Error()
	}
	if err := schema.Validate(v); err != nil {
		return err.Error()
	}
	return ""
}

// operation finds what the document says of a request: of several paths that
// fit, the one with fewer placeholders.
func (d *described) operation(method, path string) (string, describedOperation) {
	best, found := "", describedOperation{}
	for template, item := range d.paths {
		op, ok := item[strings.ToLower(method)]
		if ok && fits(template, path) && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best, found = template, op
		}
	}
	return best, found
}

func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !(strings.HasPrefix(want[i], "{") && got[i] != "") {
			return false
		}
	}
	return true
}

// TestAnswersAreHeldAgainstTheDocument shows that the check finds what it is for.
func TestAnswersAreHeldAgainstTheDocument(t *testing.T) {
	job := `{"id":"1","jobId":"1"}`
	for name, tt := range map[string]struct {
		status            int
		mediaType, body   string
		method, path, why string
	}{
		"status":           {418, "application/json", `{}`, "GET", "/jobs", "status"},
		"content type":     {200, "text/html", `{}`, "GET", "/jobs", "content type"},
		"unknown property": {200, "application/json", `{"items":[],"nextCursor":null,"more":1}`, "GET", "/jobs", "additional"},
		"null":             {200, "application/json", `{"items":null,"nextCursor":null}`, "GET", "/jobs", "null"},
		"missing":          {200, "application/json", `{"items":[` + job + `],"nextCursor":null}`, "GET", "/runs", "missing"},
		"body":             {204, "application/json", `{}`, "DELETE", "/jobs/1", "body"},
		"not described":    {200, "application/json", `{}`, "GET", "/nothing", "not described"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			h := describedAnswers{
				next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", tt.mediaType)
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
				}),
				fail: func(_ string, args ...any) { said = args[2].(string) },
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), tt.method, web.Base+tt.path, nil))
			if !strings.Contains(said, tt.why) {
				t.Fatalf("said %q, wanted a word about %q", said, tt.why)
			}
		})
	}
}
