package domain

import "strings"

// requestKeyPrefix begins the OccurrenceKey of a run that was asked for under
// a key of the caller's; bodyMark is in no key that we make.
const (
	requestKeyPrefix = "idem:"
	bodyMark         = "."
)

// RequestKey makes the OccurrenceKey of a run that was asked for under a key.
// key and body are digests, of the key and of what was asked for.
func RequestKey(key, body string) string { return requestKeyPrefix + key + bodyMark + body }

// SplitRequestKey returns what makes a request unique in its job, and the
// digest of what it asked for: empty for runs without a key of the caller's.
func SplitRequestKey(occurrence string) (unique, body string) {
	if !strings.HasPrefix(occurrence, requestKeyPrefix) {
		return occurrence, ""
	}
	unique, body, _ = strings.Cut(occurrence, bodyMark)
	return unique, body
}
