package apiclient

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", text, p.Status)
	}
	return fmt.Sprintf("%s (%s)", text, p.Code)
}

// problemOf reads an error answer. Answers of others (proxies, a wrong
// address) become a Problem without a code.
func problemOf(response *http.Response) *Problem {
	p := &Problem{}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(raw, p) != nil {
		*p = Problem{Detail: fmt.Sprintf("%s did not answer like a Carillon server: %s", response.Request.URL.Host, response.Status)}
		if to := response.Header.Get("Location"); to != "" {
			p.Detail += ", it redirects to " + strings.SplitN(to, "?", 2)[0]
		}
	}
	p.Status = int64(response.StatusCode)
	if p.Title == "" {
		p.Title = http.StatusText(response.StatusCode)
	}
	return p
}

// TransportError says that no answer came, or none that can be read.
type TransportError struct {
	Host string
	Err  error
}

func (e *TransportError) Error() string { return fmt.Sprintf("ask %s: %v", e.Host, e.Err) }
func (e *TransportError) Unwrap() error { return e.Err }
