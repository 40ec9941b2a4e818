package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Answers of a busy tenant are large, and pages ask for them again and again
// (ADR 0055). What is read is compressed, and is not sent to somebody who says
// that he has it.
//
// Compressing is safe here: an attacker learns a secret from the length of an
// answer only if he can make somebody's browser ask for it, with his text and
// the secret in one answer. Answers to GET hold no secrets, which are shown once,
// by the POST that makes them; and no browser adds the bearer token to a
// request of another site.

// minCompressed is the least size worth compressing, in bytes: below, the answer
// goes in one packet anyway.
const minCompressed = 1400

// maxAnswer bounds answers that are no streams, in bytes.
const maxAnswer = 2 << 20

// maxKept bounds the buffers that are kept for the next answer, in bytes.
const maxKept = 1 << 20

// heldAnswer keeps an answer back until it is whole.
type heldAnswer struct {
	gin.ResponseWriter
	body   *bytes.Buffer
	status int
	over   bool // it has become longer than maxAnswer
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Gzip's fastest level: the next one costs twice the time for a tenth less.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that there is
	return z
}}

func (h *heldAnswer) WriteHeader(status int)      { h.status = status }
func (h *heldAnswer) WriteHeaderNow()             {}
func (h *heldAnswer) Status() int                 { return h.status }
func (h *heldAnswer) Size() int                   { return h.body.Len() }
func (h *heldAnswer) Written() bool               { return false }
func (h *heldAnswer) Flush()                      {}
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Write passes over what is too long, so that the operation ends as ever.
func (h *heldAnswer) Write(p []byte) (int, error) {
	if h.over = h.over || h.body.Len()+len(p) > maxAnswer; h.over {
		return len(p), nil
	}
	return h.body.Write(p)
}

func (h *heldAnswer) WriteString(s string) (int, error) { return h.Write([]byte(s)) }

// held runs next with an answer that is held back, and sends it then. When next
// panics, nothing has been sent. built is called when nothing is left but to send.
func (s *Server) held(c *gin.Context, built, next func()) {
	h := &heldAnswer{ResponseWriter: c.Writer, body: buffers.Get().(*bytes.Buffer), status: http.StatusOK}
	defer release(h.body)
	func() {
		c.Writer = h
		defer func() { c.Writer = h.ResponseWriter }()
		next()
	}()
	if h.over {
		s.WriteProblem(c, NewProblem(c.Request.Context(), http.StatusUnprocessableEntity, domain.CodeInvalid,
			fmt.Sprintf("the answer has more than %d bytes; ask for fewer items (limit), or for one of them", maxAnswer)))
		return
	}
	if c.Request.Method == http.MethodGet && h.status == http.StatusOK && known(c, h.body.Bytes()) {
		return
	}
	body := h.body
	if worthCompressing(c, body.Len()) {
		body = buffers.Get().(*bytes.Buffer)
		defer release(body)
		compress(body, h.body.Bytes())
		c.Writer.Header().Set("Content-Encoding", "gzip")
	}
	r := RequestOf(c.Request.Context())
	r.stopComputing()
	if body.Len() > smallAnswer {
		sent, err := s.budgets.sending.take(c.Request.Context(), ownerOf(r.actor, r.IP), int64(body.Len()))
		if err != nil {
			c.Writer.Header().Del("Content-Encoding")
			c.Writer.Header().Del("ETag")
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		defer sent()
	}
	built()
	send(c, h.status, body.Bytes())
}

// known sets the ETag of an answer and reports whether the client has that answer, which
// is told then. An ETag that is set already names a revision to edit, and not what the
// answer says. So it stays.
func known(c *gin.Context, body []byte) bool {
	header := c.Writer.Header()
	if header.Get("ETag") != "" {
		return false
	}
	tag := answerTag(body)
	header.Set("ETag", tag)
	if !hasTag(c.GetHeader("If-None-Match"), tag) {
		return false
	}
	header.Del("Content-Type")
	c.Writer.WriteHeader(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
	return true
}

// worthCompressing reports whether the client gets an answer of so many bytes compressed.
func worthCompressing(c *gin.Context, size int) bool {
	if size < minCompressed {
		return false
	}
	c.Writer.Header().Add("Vary", "Accept-Encoding")
	return takesGzip(c.GetHeader("Accept-Encoding"))
}

func compress(to *bytes.Buffer, body []byte) {
	z := compressors.Get().(*gzip.Writer)
	z.Reset(to)
	_, _ = z.Write(body) // into memory
	_ = z.Close()
	compressors.Put(z)
}

// send writes an answer. Its other headers are set already.
func send(c *gin.Context, status int, body []byte) {
	if len(body) > 0 {
		c.Writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	c.Writer.WriteHeader(status)
	c.Writer.WriteHeaderNow()
	_, _ = c.Writer.Write(body) // to a client that has left, at worst
}

func release(b *bytes.Buffer) {
	if b.Cap() <= maxKept {
		b.Reset()
		buffers.Put(b)
	}
}

// answerTag is weak: the same answer compressed has other bytes. All nodes give
// the same for the same answer.
func answerTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// hasTag compares weakly, as If-None-Match asks for (RFC 9110, 13.1.2).
func hasTag(list, tag string) bool {
	want := strings.TrimPrefix(tag, "W/")
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == want {
			return true
		}
	}
	return false
}

// takesGzip reads Accept-Encoding: gzip or *, unless with q=0.
func takesGzip(accept string) bool {
	for one := range strings.SplitSeq(accept, ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(one), ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "*" {
			continue
		}
		weight, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(q), "q="), 64)
		return q == "" || err == nil && weight > 0
	}
	return false
}
