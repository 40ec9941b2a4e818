package web

import (
	"bytes"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
)

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
		raw, err := readAll(c, c.Request.ContentLength, MaxBody)
		if err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		c.Request.Body = io.NopCloser(bytes.NewReader(raw)) // nothing waits for it later
		serve(c.Writer, c.Request, id)
	})
}
