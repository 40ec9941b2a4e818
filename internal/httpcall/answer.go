package httpcall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Response is what came of a call.
type Response struct {
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers" doc:"Content-Type, Content-Length, Location, ETag, Retry-After"`
	JSON       json.RawMessage   `json:"json,omitempty" doc:"The body, if it is JSON"`
	Body       string            `json:"body,omitempty" doc:"The body, if it is not"`
	NotUTF8    bool              `json:"notUtf8,omitempty" doc:"Some bytes of the body were no text in its charset; U+FFFD stands for them"`
	Truncated  bool              `json:"truncated,omitempty" doc:"There was more of it"`
	DurationMS int64             `json:"durationMs"`
}

var keptHeaders = []string{"Content-Type", "Content-Length", "Location", "Etag", "Retry-After"}

// read keeps at most so many bytes of the body. It is read in the charset that the
// answer names, and becomes UTF-8.
func (c *Caller) read(ctx context.Context, answer *http.Response, most int) (out Response, err error) {
	out = Response{Status: answer.StatusCode, Headers: map[string]string{}}
	kept := http.Header{} // the others are not held while the body waits for room
	for _, name := range keptHeaders {
		if value := answer.Header.Get(name); value != "" {
			value = strings.Clone(value[:min(len(value), maxKeptHeader)])
			kept.Set(name, value)
			out.Headers[name] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	answer.Header = kept
	body, done, err := c.body(ctx, answer, most)
	if done != nil {
		defer func() { done(len(out.JSON) + len(out.Body)) }()
	}
	if errors.Is(err, errNoRoom) {
		out.Truncated = true
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if out.Truncated = len(body) > most; out.Truncated {
		body = body[:most]
	}
	if body = transcoded(body, answer.Header.Get("Content-Type")); !utf8.Valid(body) {
		body, out.NotUTF8 = bytes.ToValidUTF8(body, []byte("\uFFFD")), true
	}
	if !out.Truncated && json.Valid(body) && fits(body) {
		out.JSON = body
		return out, nil
	}
	out.Body = string(body)
	if clipped := clipEncoded(out.Body); len(clipped) < len(out.Body) {
		out.Body, out.Truncated = clipped, true
	}
	return out, nil
}

// errNoRoom: the body is not read.
var errNoRoom = errors.New("there is no room for the answer's body")

// body reads one byte more than most, if there are so many.
func (c *Caller) body(ctx context.Context, answer *http.Response, most int) (body []byte, done func(kept int), err error) {
	limited := io.LimitReader(answer.Body, int64(most)+1)
	if c.Room == nil {
		body, err = io.ReadAll(limited)
		return body, nil, err
	}
	body, err = io.ReadAll(io.LimitReader(limited, SmallAnswer+1))
	if err != nil || len(body) <= SmallAnswer {
		return body, nil, err
	}
	size := most + 1
	if n := answer.ContentLength; n >= 0 && n < int64(size) {
		size = int(n)
	}
	if done, err = c.Room(ctx, size); err != nil {
		return nil, nil, errNoRoom
	}
	whole := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // of its size, so that it does not grow
	whole.Write(body)
	_, err = whole.ReadFrom(limited)
	return whole.Bytes(), done, err
}

// transcoded is a body as UTF-8, if its Content-Type names a charset that we know.
func transcoded(body []byte, contentType string) []byte {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["charset"] == "" {
		return body
	}
	charset, err := htmlindex.Get(params["charset"])
	if err != nil || charset == unicode.UTF8 {
		return body
	}
	text, err := charset.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return text
}

// fits reports whether a JSON value has at most maxEncoded bytes as output, where spaces are
// left out and a byte may become six.
func fits(value json.RawMessage) bool {
	if 6*len(value) < maxEncoded {
		return true
	}
	raw, err := json.Marshal(value)
	return err == nil && len(raw) <= maxEncoded
}

// clipEncoded is the beginning of a valid text that has at most maxEncoded bytes
// as JSON.
func clipEncoded(text string) string {
	left := maxEncoded - len(`""`)
	for i, r := range text {
		switch {
		case strings.ContainsRune("\"\\\n\r\t\b\f", r):
			left -= 2
		case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
			left -= len(`\u0000`)
		default:
			left -= utf8.RuneLen(r)
		}
		if left < 0 {
			return text[:i]
		}
	}
	return text
}

// expects reports whether the status is one of those that are a success; an
// error names the first that is none.
func expects(expect []string, code int) (bool, error) {
	if len(expect) == 0 {
		expect = []string{"2xx"}
	}
	status := strconv.Itoa(code)
	for _, text := range expect {
		pattern := strings.ReplaceAll(strings.ToLower(text), "x", "?")
		matched, err := path.Match(pattern, status)
		if err != nil || len(pattern) != 3 || strings.Trim(pattern, "0123456789?") != "" || !strings.Contains("12345?", pattern[:1]) {
			return false, fmt.Errorf("expect: %q is no status such as 204 or 2xx", text)
		}
		if matched {
			return true, nil
		}
	}
	return false, nil
}

// verdict makes a failure of a status that was not expected: 408, 425, 429 and
// 5xx may get better, others will not. Redirects are not followed. What the body
// says counts only where the request asks for that.
func verdict(answer *http.Response, in *Request, out Response) error {
	good, err := expects(in.Expect, answer.StatusCode)
	switch {
	case err != nil:
		return executor.Permanent(err)
	case good:
		return in.Match.verdict(out)
	}
	err = fmt.Errorf("the answer is %d %s%s", answer.StatusCode, http.StatusText(answer.StatusCode), excerpt(out))
	wait, asked := retryAfter(answer.Header, time.Now())
	switch {
	case slices.Contains(notTaken, answer.StatusCode):
		err = undoneError{err, wait}
	case answer.StatusCode/100 != 5:
		return executor.Permanent(err)
	}
	if asked {
		return executor.RetryAfter(err, wait)
	}
	return err
}

// notTaken are the statuses of a receiver that has not taken the request.
var notTaken = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusServiceUnavailable}

// maxRetryAfter bounds what a receiver may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter is when a receiver wants to be asked again: in seconds, or a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter), true
	}
	return 0, false
}

// Match is what an answer's body has to say, beside its status.
type Match struct {
	Contains string          `json:"contains,omitempty" doc:"A text that the body has to contain"`
	Path     string          `json:"path,omitempty" doc:"A value of a JSON body, such as result.code or items.0.id"`
	Equals   json.RawMessage `json:"equals,omitempty" doc:"What the value at path has to be"`
}

func (m *Match) check() error {
	switch {
	case m == nil:
		return nil
	case (m.Path == "") == (m.Contains == ""):
		return errors.New("match: needs either contains, or path with equals")
	case m.Path != "" && len(bytes.TrimSpace(m.Equals)) == 0:
		return errors.New("match: path needs equals")
	case m.Path == "" && len(m.Equals) > 0:
		return errors.New("match: equals needs a path")
	}
	return nil
}

// verdict makes a failure of a body that does not say what it has to. The same
// request may be answered otherwise later.
func (m *Match) verdict(out Response) error {
	switch {
	case m == nil:
		return nil
	case m.Contains != "":
		if strings.Contains(out.Body, m.Contains) || bytes.Contains(out.JSON, []byte(m.Contains)) {
			return nil
		}
		return fmt.Errorf("the answer is %d, and its body does not contain %q%s", out.Status, m.Contains, excerpt(out))
	case out.Truncated:
		return fmt.Errorf("the answer is %d, and its body is longer than what is read of it (maxResponse): %s cannot be compared", out.Status, m.Path)
	case out.JSON == nil:
		return fmt.Errorf("the answer is %d, and its body is no JSON%s", out.Status, excerpt(out))
	}
	value, err := pick(out.JSON, m.Path, m.Path)
	if err != nil {
		return fmt.Errorf("the answer is %d, and its body has no %s%s", out.Status, m.Path, excerpt(out))
	}
	if !sameJSON(value, m.Equals) {
		return fmt.Errorf("the answer is %d, and its %s is %s, not %s", out.Status, m.Path, clip(string(value)), clip(string(m.Equals)))
	}
	return nil
}

// sameJSON compares values. Numbers are equal if they are so exactly, however they are
// written.
func sameJSON(a, b json.RawMessage) bool {
	decode := func(raw json.RawMessage) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err = d.Decode(&v)
		return withPlainNumbers(v), err
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// withPlainNumbers writes each number of a value in the one way that plainNumber has.
func withPlainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(plainNumber(string(v)))
	case []any:
		for i := range v {
			v[i] = withPlainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withPlainNumbers(v[name])
		}
	}
	return v
}

// plainNumber writes a number as its digits without zeros at either end and an exponent.
// It computes nothing with them, because an exponent can be any.
func plainNumber(text string) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	e, err := strconv.ParseInt(cmp.Or(exponent, "0"), 10, 48)
	if err != nil {
		return text
	}
	digits = strings.TrimLeft(whole+fraction, "0")
	e -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	e += int64(len(digits) - len(short))
	if negative {
		short = "-" + short
	}
	return short + "e" + strconv.FormatInt(e, 10)
}

// excerpt is the beginning of an answer on one printable line.
func excerpt(out Response) string {
	if clean := clip(out.Body + string(out.JSON)); clean != "" {
		return ": " + clean
	}
	return ""
}

func clip(text string) string {
	const most = 200
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text[:min(len(text), most)], ""), func(r rune) bool {
		return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0
	}), " ")
}
