package executor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// encodeAttrs writes the attributes of a record as a JSON object, groups as
// objects within it. Without attributes it returns nil.
func encodeAttrs(scopes []scope, record slog.Record) []byte {
	if len(scopes) == 0 && record.NumAttrs() == 0 {
		return nil
	}
	e := attrEncoder{}
	for _, s := range scopes {
		if s.group != "" {
			e.waiting = append(e.waiting, s.group)
		}
		for _, a := range s.attrs {
			e.attr(a)
		}
	}
	record.Attrs(func(a slog.Attr) bool { e.attr(a); return true })
	return e.end()
}

// attrEncoder writes one object. A group is written when its first attribute
// comes, since slog leaves out empty groups.
type attrEncoder struct {
	buf     []byte
	waiting []string // groups that hold nothing yet
	depth   int      // objects that are open
}

// open begins the object and the groups that wait.
func (e *attrEncoder) open() {
	if e.depth == 0 {
		e.buf, e.depth = append(e.buf, '{'), 1
	}
	for _, group := range e.waiting {
		e.key(group)
		e.buf, e.depth = append(e.buf, '{'), e.depth+1
	}
	e.waiting = nil
}

func (e *attrEncoder) end() []byte {
	for ; e.depth > 0; e.depth-- {
		e.buf = append(e.buf, '}')
	}
	return e.buf
}

func (e *attrEncoder) key(name string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.text(name)
	e.buf = append(e.buf, ':')
}

func (e *attrEncoder) text(s string) {
	quoted, _ := json.Marshal(s) // a string cannot fail
	e.buf = append(e.buf, quoted...)
}

func (e *attrEncoder) attr(a slog.Attr) {
	value := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if value.Kind() != slog.KindGroup {
		e.open()
		e.key(a.Key)
		if isSecret(a.Key) {
			e.text(redacted)
		} else {
			e.value(value)
		}
		return
	}
	members := value.Group()
	if len(members) == 0 {
		return
	}
	if a.Key == "" { // slog: its members belong to the group around it
		for _, m := range members {
			e.attr(m)
		}
		return
	}
	inner := attrEncoder{}
	for _, m := range members {
		inner.attr(m)
	}
	if object := inner.end(); object != nil {
		e.open()
		e.key(a.Key)
		e.buf = append(e.buf, object...)
	}
}

func (e *attrEncoder) value(v slog.Value) {
	switch v.Kind() {
	case slog.KindString:
		e.text(v.String())
	case slog.KindInt64:
		e.buf = strconv.AppendInt(e.buf, v.Int64(), 10)
	case slog.KindUint64:
		e.buf = strconv.AppendUint(e.buf, v.Uint64(), 10)
	case slog.KindBool:
		e.buf = strconv.AppendBool(e.buf, v.Bool())
	case slog.KindDuration:
		e.text(v.Duration().String())
	case slog.KindTime:
		e.text(v.Time().Format(time.RFC3339Nano))
	default: // floats too: json writes them, or refuses NaN
		e.any(v.Any())
	}
}

// any writes a value of any type. What JSON cannot carry is printed, and a
// method that panics is reported in its place: a log call must not end a handler.
func (e *attrEncoder) any(v any) {
	defer func() {
		if p := recover(); p != nil {
			e.text(fmt.Sprintf("!PANIC: %v", p))
		}
	}()
	if err, ok := v.(error); ok {
		e.text(err.Error())
		return
	}
	encoded, err := proto.EncodeJSON(v)
	if err != nil {
		e.text(fmt.Sprintf("%+v", v))
		return
	}
	e.buf = append(e.buf, encoded...)
}
