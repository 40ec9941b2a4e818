package executor

import "log/slog"

// Secret is a text that does not show itself: printing, logging or encoding
// it gives "[hidden]". Convert it to a string to read it.
type Secret string

const hidden = "[hidden]"

// String returns "[hidden]", or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue is String, for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
