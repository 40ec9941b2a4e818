package proto

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// JSON in a frame is UTF-8, as RFC 8259 demands. encoding/json takes any bytes
// inside of a text, and other readers refuse such a value.

// ValidJSON reports whether raw is one JSON value in UTF-8.
func ValidJSON(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }

// CleanJSON returns raw with U+FFFD for bytes that are not UTF-8. In JSON they can stand
// in texts only, so the result is JSON if raw is. It copies only what it changes.
func CleanJSON(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
}

// EncodeJSON is json.Marshal for values with a json.RawMessage or a MarshalJSON inside.
// json.Marshal copies their bytes; here U+FFFD stands for those that are not UTF-8.
func EncodeJSON(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	return CleanJSON(raw), err
}
