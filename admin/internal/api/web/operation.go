package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/auth"
)

// Operation describes a route; method, path and id are needed.
type Operation struct {
	Method, Path string
	ID           string
	Tag          string
	Summary      string
	Description  string
	// Status of success; 0 = 200, or 204 without a body.
	Status int
	// Also says what other statuses of success mean; their body is the same.
	Also map[int]string
	// Errors lists the statuses beyond those every route has.
	Errors []int
	// MaxBody bounds the request's body, in bytes; 0 = MaxBody of the package.
	MaxBody int64
	// Cookies: the operation reads the refresh cookie, so other sites must not
	// be able to send it.
	Cookies bool
	// ReadsCookie: the refresh cookie is the credential.
	ReadsCookie bool
	// Large: the answer may have as many bytes as a page of a list has at most. Few of
	// them are built at once.
	Large bool
	// Computes marks an operation that may compute for more than some milliseconds. Few of
	// them do so at once. Its answer is sent when it is whole.
	Computes bool
	// Reaches marks an operation that waits for another host, such as a receiver or a broker. Few
	// of them do so at once.
	Reaches bool
	// Unaudited is why an operation that is no GET leaves no audit entry: it changes nothing, or
	// it writes data, such as timers. Empty: it leaves one.
	Unaudited string
	// Produces is the media type of a streamed answer; empty = JSON.
	Produces string
	// Request and Answer are the schemas of bodies that the handler has as JSON. nil: the
	// handler's types are the schemas.
	Request, Answer *huma.Schema
}

// Handler answers one operation. The identity is nobody on public routes.
type Handler[I, O any] func(ctx context.Context, id auth.Identity, in *I) (*O, error)

// Register adds an operation. It is the only way to add one, so that there is
// no operation without a policy. It is compiled for each pair of types, so that code that
// does not depend on them stands in describe and document.
func Register[I, O any](s *Server, p Policy, op Operation, h Handler[I, O]) {
	s.notePolicy(p, op.Method, op.Path)
	s.noteBounds(op)
	s.audit.kinds[op.ID] = ""
	if kind := op.auditKind(); op.writes() && !strings.HasPrefix(kind, "{") {
		s.audit.kinds[op.ID] = kind
	}
	if op.Unaudited != "" {
		s.audit.unaudited[op.ID] = op.Unaudited
	}
	huma.Register(s.huma, s.describe(p, op), func(ctx context.Context, in *I) (*O, error) {
		if err := s.begin(ctx, op); err != nil {
			return nil, s.Problem(ctx, err)
		}
		var out *O
		err := s.audit.around(ctx, p, op, in, func(ctx context.Context) (err error) {
			out, err = h(ctx, identityOf(ctx), in)
			return err
		})
		if err == nil && op.Large {
			err = s.compute(ctx) // to be written as JSON
		}
		if err != nil {
			return nil, s.Problem(ctx, err)
		}
		return out, nil
	})
	s.document(op)
}

// noteBounds keeps what bounds an operation that computes, reaches other hosts or has a large
// answer.
func (s *Server) noteBounds(op Operation) {
	var list []string
	for _, bound := range []struct {
		is   bool
		name string
	}{{op.Computes, "computes"}, {op.Reaches, "reaches"}, {op.Large, "large"}} {
		if bound.is {
			list = append(list, bound.name)
		}
	}
	if len(list) > 0 {
		s.bounds[op.ID] = strings.Join(list, ", ")
	}
}

// Bounds says of operations by id what few requests at once may do: compute, reach other
// hosts, or read and build a large answer.
func (s *Server) Bounds() map[string]string { return maps.Clone(s.bounds) }

// begin is called when all of a request has been read.
func (s *Server) begin(ctx context.Context, op Operation) error {
	RequestOf(ctx).bodyIsRead()
	if op.Reaches {
		if err := s.reach(ctx); err != nil {
			return err
		}
	}
	if !op.Computes {
		return nil
	}
	return s.compute(ctx)
}

func (s *Server) describe(p Policy, op Operation) huma.Operation {
	described := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Tags: []string{op.Tag},
		Summary: op.Summary, Description: op.Description, DefaultStatus: op.Status,
		Errors: op.errorStatuses(p),
		// The body is bounded and checked before huma gets it. Without a bound of its own huma
		// copies it in one piece.
		MaxBodyBytes: -1, SkipValidateBody: true,
		Extensions:  p.extensions(),
		Middlewares: huma.Middlewares{s.authorize(p, op)},
	}
	described.Security = []map[string][]string{} // said, or clients take it for forgotten
	switch {
	case p.signedIn:
		described.Security = append(described.Security, map[string][]string{"bearer": {}})
	case op.ReadsCookie:
		described.Security = append(described.Security, map[string][]string{"refreshCookie": {}})
	}
	if op.Produces != "" {
		described.Responses = oneResponse(http.StatusOK, op.Produces, &huma.Schema{Type: huma.TypeString})
	}
	if op.Answer != nil {
		described.Responses = oneResponse(cmp.Or(op.Status, http.StatusOK), "application/json", op.Answer)
	}
	if op.Request != nil {
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: op.Request}}}
	}
	return described
}

func oneResponse(status int, media string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{strconv.Itoa(status): {
		Description: http.StatusText(status), Content: map[string]*huma.MediaType{media: {Schema: schema}},
	}}
}

// document completes the description that huma wrote of an operation.
func (s *Server) document(op Operation) {
	item := s.huma.OpenAPI().Paths[op.Path]
	documented := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}[op.Method]
	for _, r := range documented.Responses {
		for _, h := range r.Headers { // huma describes the schema only
			h.Description = h.Schema.Description
		}
	}
	if op.held() && op.Method == http.MethodGet {
		describeTags(documented)
	}
	if body := documented.RequestBody; body != nil {
		s.bodies[op.ID] = body.Content["application/json"].Schema
	}
	for status, meaning := range op.Also {
		same := *documented.Responses[strconv.Itoa(documented.DefaultStatus)]
		same.Description = meaning
		documented.Responses[strconv.Itoa(status)] = &same
	}
}

func (op Operation) errorStatuses(p Policy) []int {
	list := append([]int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable}, op.Errors...)
	if p.signedIn {
		list = append(list, http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest)
	}
	if op.Cookies {
		list = append(list, http.StatusForbidden)
	}
	if strings.Contains(op.Path, "{") {
		list = append(list, http.StatusNotFound)
	}
	if hasBody(op.Method) {
		list = append(list, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return list
}

func (op Operation) maxBody(p Policy) int64 {
	if !p.signedIn {
		return publicBody
	}
	return cmp.Or(op.MaxBody, MaxBody)
}

// held tells whether answers are held back until they are whole.
func (op Operation) held() bool {
	return op.Produces == "" && (op.Method == http.MethodGet || op.Computes)
}

// describeTags says that what has not changed is not sent again. Where ETag is a
// revision to edit, it says nothing of the rest of the answer.
func describeTags(op *huma.Operation) {
	whole := op.Responses["200"]
	if whole == nil || whole.Headers["ETag"] != nil {
		return
	}
	text := &huma.Schema{Type: huma.TypeString}
	if whole.Headers == nil {
		whole.Headers = map[string]*huma.Param{}
	}
	whole.Headers["ETag"] = &huma.Param{Description: "Names what the answer says, for If-None-Match", Schema: text}
	op.Responses["304"] = &huma.Response{Description: "The answer would be the one that If-None-Match names", Headers: map[string]*huma.Param{"ETag": {Description: "As given", Schema: text}}}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "If-None-Match", In: "header", Schema: text,
		Description: "ETag of an answer that the client has: 304 without a body if it is still the same",
	})
}

// hasBody tells the methods of which bodies are read.
func hasBody(method string) bool { return method != http.MethodGet && method != http.MethodDelete }
