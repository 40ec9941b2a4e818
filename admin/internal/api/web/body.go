package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// jsonFormat is huma's. Bodies are checked before huma gets them (readOperation).
var jsonFormat = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: json.Unmarshal}

const (
	// bodyPatience is how long the body of a request may take to arrive.
	bodyPatience = 5 * time.Second
	// publicBody bounds bodies of operations that need no log-in, in bytes. A legal
	// password takes 6 KiB when each of its characters is escaped.
	publicBody = 16 << 10
	// mostErrors bounds the wrong values that one answer names.
	mostErrors = 20
)

// readOperation reads the body of an operation within the node's budget, and holds it
// against the operation's schema. Unknown members are refused while tokens are read,
// before anything is built. done has to be called when the request is over.
func (s *Server) readOperation(ctx huma.Context, c *gin.Context, op Operation, p Policy, id auth.Identity) (done func(), err error) {
	schema := s.bodies[op.ID]
	if schema == nil {
		return func() {}, nil
	}
	if media, _, err := mime.ParseMediaType(cmp.Or(c.GetHeader("Content-Type"), "application/json")); err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, NewProblem(ctx.Context(), http.StatusUnsupportedMediaType, domain.CodeInvalid, "the body has to be JSON (Content-Type: application/json)")
	}
	most := op.maxBody(p)
	size := c.Request.ContentLength
	if size < 0 {
		size = most
	}
	done, err = s.budgets.of(size).take(ctx.Context(), ownerOf(id, RequestOf(ctx.Context()).IP), size)
	if err != nil {
		// Many clients look for an answer only after they have sent the whole body.
		RequestOf(ctx.Context()).readWithin(bodyPatience)
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Request.Body, most))
		return nil, err
	}
	raw, err := readAll(c, size, most)
	if err == nil && len(raw) > quickBody {
		err = s.compute(ctx.Context()) // until the operation begins
	}
	if err == nil && len(raw) > 0 {
		err = checkBody(ctx.Context(), s.huma.OpenAPI().Components.Schemas, schema, raw)
	}
	if err != nil {
		done()
		return nil, err
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(raw))
	return done, nil
}

// readAll reads a body of about size bytes, or of an unknown size below 0, and of no more
// than most.
func readAll(c *gin.Context, size, most int64) ([]byte, error) {
	r := RequestOf(c.Request.Context())
	r.readWithin(bodyPatience)
	defer r.readWithin(0)
	raw := bytes.NewBuffer(make([]byte, 0, max(0, min(size, most))+bytes.MinRead)) // it is within the budget
	n, err := raw.ReadFrom(io.LimitReader(c.Request.Body, most+1))
	switch {
	case n > most:
		return nil, errBodyTooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, NewProblem(c.Request.Context(), http.StatusRequestTimeout, domain.CodeInvalid, "the body did not arrive within "+bodyPatience.String())
	case err != nil:
		return nil, NewProblem(c.Request.Context(), http.StatusBadRequest, codeMalformedJSON, "the body ended early")
	}
	return raw.Bytes(), nil
}

// checkBody returns everything that is wrong with a body, up to mostErrors.
func checkBody(ctx context.Context, registry huma.Registry, schema *huma.Schema, data []byte) error {
	if at := invalidUTF8(data); at >= 0 {
		return malformed(ctx, data, &bodyError{"body", "has bytes that are not UTF-8", "send it in UTF-8, or the bytes as base64", at})
	}
	if deep := findDeep(data); deep != nil {
		return malformed(ctx, data, deep)
	}
	if !json.Valid(data) {
		return malformed(ctx, data, json.Unmarshal(data, &json.RawMessage{}))
	}
	w := walker{registry: registry, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	err := w.value(schema, false)
	var twice *bodyError
	switch {
	case errors.As(err, &twice):
		return malformed(ctx, data, twice)
	case len(w.wrong) > 0:
		return invalidBody(ctx, w.wrong)
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("check body: %w", err)
	}
	return nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// bodyError is what encoding/json would let pass.
type bodyError struct {
	location      string // for example "body.retry.delay"
	message, hint string
	offset        int // byte of the body
}

func (e *bodyError) Error() string { return e.location + " " + e.message }

// maxNesting bounds the objects and lists around a value. A megabyte of
// brackets 10,000 deep, which encoding/json reads, costs a hundred times its
// size.
const maxNesting = 200

func findDeep(data []byte) *bodyError {
	deep, _ := outline(data)
	return deep
}

// outline also counts the members and elements in all objects and lists. It builds nothing.
func outline(data []byte) (deep *bodyError, values int) {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return &bodyError{"body", fmt.Sprintf("is nested deeper than %d levels", maxNesting), "send a flatter value", i}, 0
			}
			values++
		case c == ',':
			values++
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil, values
}

// walker goes along the tokens of one well-formed value and holds them against a schema.
// It builds no more than one number or text at a time. A place gets its name only when it
// is told.
type walker struct {
	registry huma.Registry
	data     []byte
	dec      *json.Decoder
	path     []step
	wrong    []*huma.ErrorDetail
	scalar   huma.ValidateResult
}

// step is a member of an object, or an element of an array.
type step struct {
	name  string // "" in an array
	index int
}

// errEnough ends a walk that has found mostErrors.
var errEnough = errors.New("enough is wrong")

func (w *walker) fail(value any, message string) error {
	w.wrong = append(w.wrong, &huma.ErrorDetail{Location: w.location(), Message: message, Value: value})
	if len(w.wrong) == mostErrors {
		return errEnough
	}
	return nil
}

// value reads a value that a schema describes, or null if that is allowed. nil and a
// schema without a type describe any value.
func (w *walker) value(schema *huma.Schema, orNull bool) error {
	from := w.dec.InputOffset()
	token, err := w.dec.Token()
	var tooLarge *json.UnmarshalTypeError
	if errors.As(err, &tooLarge) {
		return w.fail(nil, "is a number beyond 1.7e308, the largest one of 64 bits: send it as text")
	}
	if err != nil || token == nil && orNull {
		return err
	}
	_, isText := token.(string)
	if schema = w.branch(w.resolve(schema), isText); schema != nil && schema.Type == "" {
		schema = nil
	}
	switch token {
	case json.Delim('{'):
		if schema != nil && schema.Type != huma.TypeObject {
			err, schema = w.misfit(schema, map[string]any{}), nil
		}
		if err != nil {
			return err
		}
		return w.inside(func() error { return w.object(schema) })
	case json.Delim('['):
		if schema != nil && schema.Type != huma.TypeArray {
			err, schema = w.misfit(schema, []any{}), nil
		}
		if err != nil {
			return err
		}
		return w.inside(func() error { return w.array(schema) })
	}
	if text, ok := token.(string); ok && schema != nil && w.halved(text, from) {
		return w.fail(nil, halfPair)
	}
	return w.misfit(schema, token)
}

func (w *walker) resolve(schema *huma.Schema) *huma.Schema {
	for schema != nil && schema.Ref != "" {
		schema = w.registry.SchemaFromRef(schema.Ref)
	}
	return schema
}

// branch returns the one of two alternatives that a value has to be: one is a text, and the
// other is not.
func (w *walker) branch(schema *huma.Schema, isText bool) *huma.Schema {
	if schema == nil || len(schema.OneOf) == 0 {
		return schema
	}
	for _, one := range schema.OneOf {
		if one = w.resolve(one); (one.Type == huma.TypeString) == isText {
			return one
		}
	}
	return schema
}

// halfPair is what is wrong with a text that cannot be stored as it came. encoding/json
// would replace the half.
const halfPair = "has one half of a surrogate pair, which is no character: send both halves, or the character itself in UTF-8"

// halved reports whether the text that was read last, somewhere behind from, has an escape
// of a surrogate without its other half.
func (w *walker) halved(text string, from int64) bool {
	return strings.ContainsRune(text, utf8.RuneError) && hasHalfPair(w.data[from:w.dec.InputOffset()])
}

// hasHalfPair looks at the escapes of well-formed JSON.
func hasHalfPair(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		first := escaped(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(first) {
			continue
		}
		if !bytes.HasPrefix(raw[i+1:], []byte(`\u`)) || utf16.DecodeRune(first, escaped(raw[i+3:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escaped is the number of an escape's four digits.
func escaped(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // JSON that is well-formed has them
	return rune(n)
}

// misfit tells what is wrong with a value that has no parts.
func (w *walker) misfit(schema *huma.Schema, value any) error {
	if schema == nil {
		return nil
	}
	w.scalar.Reset()
	huma.Validate(w.registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, value, &w.scalar)
	for _, err := range w.scalar.Errors {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			if err := w.fail(d.Value, d.Message); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside goes through the members or elements up to the end of their list.
func (w *walker) inside(list func() error) error {
	w.path = append(w.path, step{})
	if err := list(); err != nil {
		return err
	}
	w.path = w.path[:len(w.path)-1]
	_, err := w.dec.Token()
	return err
}

func (w *walker) array(schema *huma.Schema) error {
	last, i := len(w.path)-1, 0
	var items *huma.Schema
	if schema != nil {
		items = schema.Items
	}
	for ; w.dec.More(); i++ {
		if schema != nil && schema.MaxItems != nil && i == *schema.MaxItems {
			w.path = w.path[:last]
			return errors.Join(w.fail(nil, fmt.Sprintf(validation.MsgExpectedMaxItems, *schema.MaxItems)), errEnough) // the rest is not read
		}
		w.path[last] = step{index: i}
		if err := w.value(items, false); err != nil {
			return err
		}
	}
	if schema != nil && schema.MinItems != nil && i < *schema.MinItems {
		return w.outside(func() error { return w.fail(nil, fmt.Sprintf(validation.MsgExpectedMinItems, *schema.MinItems)) })
	}
	return nil
}

// outside runs tell for the value around the present member or element.
func (w *walker) outside(tell func() error) error {
	last := len(w.path) - 1
	step := w.path[last]
	w.path = w.path[:last]
	err := tell()
	w.path = append(w.path, step)
	return err
}

func (w *walker) object(schema *huma.Schema) error {
	last := len(w.path) - 1
	var seen map[string]bool
	for w.dec.More() {
		from := w.dec.InputOffset()
		key, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if schema != nil && w.halved(name, from) {
			if err := w.outside(func() error { return w.fail(nil, "has a member whose name "+halfPair) }); err != nil {
				return err
			}
		}
		w.path[last] = step{name: "." + name}
		if seen[name] {
			return &bodyError{w.location(), "comes twice", "say it once", int(w.dec.InputOffset())}
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[name] = true
		if err := w.member(schema, name); err != nil {
			return err
		}
	}
	if schema == nil {
		return nil
	}
	return w.outside(func() error {
		if schema.MaxProperties != nil && len(seen) > *schema.MaxProperties {
			if err := w.fail(nil, fmt.Sprintf(validation.MsgExpectedMaxProperties, *schema.MaxProperties)); err != nil {
				return err
			}
		}
		for _, name := range schema.Required {
			if seen[name] || schema.Properties[name].ReadOnly {
				continue
			}
			if err := w.fail(nil, fmt.Sprintf(validation.MsgExpectedRequiredProperty, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// unknownMember is a member that a schema does not know, with the names of those that it knows.
type unknownMember struct {
	name  string
	known []string
}

// written are the members of a schema that may be written, by name.
func written(schema *huma.Schema) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(schema.Properties)), func(name string) bool { return schema.Properties[name].ReadOnly })
}

// mostKnown bounds the members that a hint lists.
const mostKnown = 24

func (m unknownMember) hint() string {
	if near := spelling.Hint(m.name, m.known); near != "" || len(m.known) == 0 || len(m.known) > mostKnown {
		return near
	}
	return "known here: " + strings.Join(m.known, ", ")
}

// member reads the value of a member. The schema's own members are known by it.
func (w *walker) member(schema *huma.Schema, name string) error {
	if schema == nil {
		return w.value(nil, true)
	}
	of := schema.Properties[name]
	if of == nil {
		more, open := schema.AdditionalProperties.(*huma.Schema)
		if allowed, _ := schema.AdditionalProperties.(bool); !open && !allowed {
			if err := w.fail(unknownMember{name, written(schema)}, validation.MsgUnexpectedProperty); err != nil {
				return err
			}
		}
		return w.value(more, false)
	}
	return w.value(of, !slices.Contains(schema.Required, name)) // null is as good as absent
}

// location is where the walker is, for example "body.retry[2].delay".
func (w *walker) location() string {
	var b strings.Builder
	b.WriteString("body")
	for _, s := range w.path {
		if s.name == "" {
			s.name = "[" + strconv.Itoa(s.index) + "]"
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// position says where an offset is, for people.
func position(text []byte, offset int) string {
	before := text[:min(offset, len(text))]
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte{'\n'}), len(before)-bytes.LastIndexByte(before, '\n'))
}

// misfitOf names the field of the API whose value our own type does not hold:
// numbers that the schema lets pass are too large, or no whole ones.
func misfitOf(body string, d *huma.ErrorDetail) *huma.ErrorDetail {
	const mark = "into Go struct field "
	_, rest, found := strings.Cut(d.Message, mark)
	if !found {
		return d
	}
	field, _, _ := strings.Cut(rest, " ")
	_, field, _ = strings.Cut(field, ".") // without the name of our type
	parts := slices.DeleteFunc(strings.Split(field, "."), func(part string) bool { return part != "" && part[0] >= 'A' && part[0] <= 'Z' })
	field = strings.Join(parts, ".") // and without those of types in it
	return &huma.ErrorDetail{Location: body + "." + field, Message: "is a number that is too large, or no whole one"}
}
