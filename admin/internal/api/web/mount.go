package web

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Door is where messages of another protocol come in.
type Door struct {
	Path string
	// Requests counts the requests that a message holds, without building them.
	Requests func(message []byte) int
	// MaxRequests bounds them.
	MaxRequests int
	// MaxValues bounds the members and elements in all objects and lists of a message, which
	// take far more memory than their text.
	MaxValues int
	Serve     func(w http.ResponseWriter, r *http.Request, id auth.Identity)
}

// Mount adds a door outside the OpenAPI document. Its messages are authenticated, counted
// and bounded as operations are. Their requests are counted before anything is decoded. A
// request to the API is made as the same caller, and is checked and counted there again.
func (s *Server) Mount(p Policy, door Door) {
	s.Plain(p, http.MethodPost, door.Path, func(c *gin.Context) {
		done, err := s.admit(c, door)
		if err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		defer done()
		s.plainAsProblem(c, func(w http.ResponseWriter) {
			door.Serve(w, c.Request, RequestOf(c.Request.Context()).actor)
		})
	})
}

// admit reads a message within the bounds of its caller. done has to be called when it is
// answered.
func (s *Server) admit(c *gin.Context, door Door) (done func(), err error) {
	var held []func()
	done = func() {
		for _, give := range held {
			give()
		}
	}
	defer func() {
		if err != nil {
			done()
			done = nil
		}
	}()
	ctx := c.Request.Context()
	id := RequestOf(ctx).actor
	if err := s.rates.take(ctx, id, false); err != nil {
		return done, err
	}
	end, err := s.waits.begin(id)
	if err != nil {
		return done, err
	}
	held = append(held, end)
	size := c.Request.ContentLength
	if size > MaxBody {
		return done, errBodyTooLarge(MaxBody)
	}
	if size < 0 {
		size = MaxBody
	}
	// The protocol's library holds a message about four times.
	free, err := s.budgets.of(4*size).take(ctx, ownerOf(id, ""), 4*size)
	if err != nil {
		return done, err
	}
	held = append(held, free)
	raw, err := readAll(c, size, MaxBody)
	if err != nil {
		return done, err
	}
	deep, values := outline(raw)
	if deep != nil {
		return done, malformed(ctx, raw, deep)
	}
	if values > door.MaxValues {
		return done, domain.Invalid("body", "has %d values in its objects and lists, and may have at most %d: send a smaller message, and give a large input to the API", values, door.MaxValues)
	}
	requests := door.Requests(raw)
	if requests > door.MaxRequests {
		return done, domain.Invalid("body", "is a batch of %d requests, and may have at most %d: send several batches, one after the other", requests, door.MaxRequests)
	}
	free, err = s.budgets.messages.take(ctx, ownerOf(id, ""), int64(requests))
	if err != nil {
		return done, err
	}
	held = append(held, free)
	c.Request.Body = io.NopCloser(bytes.NewReader(raw)) // nothing waits for it later
	return done, nil
}

// plainAsProblem turns an error that a handler answers as plain text into a Problem. Other
// answers stay as they are.
func (s *Server) plainAsProblem(c *gin.Context, serve func(http.ResponseWriter)) {
	w := &plainErrors{ResponseWriter: c.Writer}
	serve(w)
	if w.status == 0 {
		return
	}
	h := c.Writer.Header()
	h.Del("Content-Length")
	text := cmp.Or(strings.TrimSpace(w.text.String()), http.StatusText(w.status))
	s.WriteProblem(c, NewProblem(c.Request.Context(), w.status, plainCode(w.status), text))
}

// plainCode is the code of an error that has only its status.
func plainCode(status int) domain.Code {
	switch status {
	case http.StatusUnauthorized:
		return domain.CodeUnauthenticated
	case http.StatusForbidden:
		return domain.CodeDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return domain.CodeNotFound
	case http.StatusRequestEntityTooLarge:
		return codeBodyTooLarge
	}
	if status >= 500 {
		return domain.CodeInternal
	}
	return domain.CodeInvalid
}

// maxPlain bounds the text of an error that is kept, in bytes.
const maxPlain = 1 << 10

// plainErrors keeps errors in plain text back.
type plainErrors struct {
	http.ResponseWriter
	wrote  bool
	status int // of an error that is kept back; 0: none
	text   strings.Builder
}

// Unwrap is for http.ResponseController.
func (w *plainErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *plainErrors) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *plainErrors) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status == 0 {
		return w.ResponseWriter.Write(p)
	}
	w.text.Write(p[:min(len(p), maxPlain-w.text.Len())])
	return len(p), nil
}
