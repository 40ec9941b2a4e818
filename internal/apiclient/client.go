// Package apiclient speaks the admin's HTTP API: it answers "how is a request
// of docs/openapi.json written, and what did the server say?".
//
// All types and one method for each operation are generated from the document;
// this file is the way out and back. Every answer also keeps the server's own
// bytes (Doc), fields unknown to this version included. Errors of the server are
// *Problem; errors on the way are *TransportError.
package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
)

//go:generate oapi-codegen -config oapi-codegen.yaml ../../docs/openapi.json

// maxAnswer bounds an answer in bytes; the largest real one is a page of 200
// runs or 5,000 log lines.
const maxAnswer = 64 << 20

// Doer sends requests; *http.Client is one. It may add credentials. Redirects
// must not be followed: they would turn POST into GET, and show the credentials
// to others.
type Doer interface {
	Do(request *http.Request) (*http.Response, error)
}

// Client asks one server. It is as safe for concurrent use as its Doer.
type Client struct {
	base *url.URL
	doer Doer
}

// New checks the server's address.
func New(base string, doer Doer) (*Client, error) {
	u, err := ParseURL(base)
	if err != nil {
		return nil, err
	}
	return &Client{base: u, doer: doer}, nil
}

// ParseURL reads a server address; one without a scheme is refused, because
// guessing http would send secrets in the clear.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("server address %q: want something like https://carillon.example.com or http://127.0.0.1:8080", text)
	}
	return u, nil
}

// KeepRedirects is an http.Client's CheckRedirect that follows none.
func KeepRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Doc is an answer twice: read into T, and as the server wrote it.
type Doc[T any] struct {
	Value T
	Raw   json.RawMessage
	// Header and Status are those of a whole answer; an item of a list has none.
	Header http.Header
	Status int
}

// None is the answer of operations that give none.
type None struct{}

// UnmarshalJSON keeps both forms.
func (d *Doc[T]) UnmarshalJSON(raw []byte) error {
	d.Raw = bytes.Clone(raw)
	return json.Unmarshal(raw, &d.Value)
}

// MarshalJSON gives the server's bytes.
func (d Doc[T]) MarshalJSON() ([]byte, error) {
	if d.Raw == nil {
		return json.Marshal(d.Value)
	}
	return d.Raw, nil
}

// As reads an answer as another type: a run of which more is told is a run.
func As[T, U any](d Doc[U]) (out Doc[T], err error) {
	out = Doc[T]{Raw: d.Raw, Header: d.Header, Status: d.Status}
	return out, json.Unmarshal(d.Raw, &out.Value)
}

// Request is one question.
type Request struct {
	Method, Path string // the path is escaped
	Query        url.Values
	Header       http.Header
	Body         any // written as JSON; nil = none
}

// Edit changes a request before it is sent.
type Edit func(*Request)

// Header adds a header.
func Header(name, value string) Edit { return func(r *Request) { r.Header.Set(name, value) } }

// Body sends other JSON than the operation's type would give: a document that a
// person wrote, with fields that this version may not know.
func Body(body any) Edit { return func(r *Request) { r.Body = body } }

// newRequest puts values for the {names} of path, in their order.
func newRequest(method, path string, values ...any) *Request {
	for _, v := range values {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape(fmt.Sprint(v)) + after
	}
	return &Request{Method: method, Path: path, Query: url.Values{}, Header: http.Header{}}
}

// query and header leave out what is zero.
func (r *Request) query(name string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		r.Query.Set(name, fmt.Sprint(value))
	}
}

func (r *Request) header(name string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		r.Header.Set(name, fmt.Sprint(value))
	}
}

func ask[T any](ctx context.Context, c *Client, r *Request, edits []Edit) (d Doc[T], err error) {
	for _, edit := range edits {
		edit(r)
	}
	response, err := c.send(ctx, r)
	if err != nil {
		return d, err
	}
	defer response.Body.Close()
	d.Header, d.Status = response.Header, response.StatusCode
	if response.StatusCode >= 300 {
		return d, problemOf(response)
	}
	if _, none := any(d.Value).(None); none {
		return d, nil
	}
	if d.Raw, err = readAnswer(response.Body, maxAnswer); err != nil {
		return d, &TransportError{c.base.Host, err}
	}
	if err := json.Unmarshal(d.Raw, &d.Value); err != nil {
		return d, &TransportError{c.base.Host, fmt.Errorf("the answer is not the API's JSON (%w); is this address a Carillon server?", err)}
	}
	return d, nil
}

func readAnswer(body io.Reader, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("the answer is larger than %d bytes; ask for less at once", most)
	}
	return raw, nil
}

// send asks. The caller closes the answer's body.
func (c *Client) send(ctx context.Context, r *Request) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(raw)
		r.Header.Set("Content-Type", "application/json")
	}
	target := c.base.String() + r.Path
	if query := r.Query.Encode(); query != "" {
		target += "?" + query
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header = r.Header
	request.Header.Set("Accept", "application/json, application/problem+json")
	response, err := c.doer.Do(request)
	// What net/http says of a request that failed begins with method and address;
	// other errors are a Doer's own.
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, &TransportError{c.base.Host, e.Err}
	}
	return response, err
}
