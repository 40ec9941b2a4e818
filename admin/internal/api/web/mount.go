package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// mountedRead is how long the body of a mounted request may take to arrive.
const mountedRead = 10 * time.Second

// Mount adds a door for messages of another protocol, outside the OpenAPI document.
// Its requests are authenticated, counted and bounded as operations are. What they
// ask of the API is asked as the same caller, and judged there again.
func (s *Server) Mount(p Policy, path string, serve func(w http.ResponseWriter, r *http.Request, id auth.Identity)) {
	s.Plain(p, http.MethodPost, path, func(c *gin.Context) {
		id := RequestOf(c.Request.Context()).actor
		err := s.rates.take(c.Request.Context(), id, false)
		var end func()
		if err == nil {
			end, err = s.waits.begin(id)
		}
		if err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		defer end()
		done, err := s.budgets.of(MaxBody).take(c.Request.Context(), ownerOf(id, ""), MaxBody)
		if err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		defer done()
		if err := readBody(c); err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		serve(c.Writer, c.Request, id)
	})
}

// readBody reads a body whole, so that nothing waits for it later.
func readBody(c *gin.Context) error {
	conn := http.NewResponseController(c.Writer)
	_ = conn.SetReadDeadline(time.Now().Add(mountedRead)) // refused by connections that have none
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errBodyTooLarge(MaxBody)
	}
	if err != nil {
		return NewProblem(c.Request.Context(), http.StatusRequestTimeout, domain.CodeInvalid, "the body did not arrive within "+mountedRead.String())
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(raw))
	return nil
}
