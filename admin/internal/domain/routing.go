package domain

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"
)

// Routing names the routing strategy: which instance gets a run. The order of
// the instances is that of their first registration, on every node the same.
// No strategy takes an instance that is full, leaves or does not answer.
type Routing string

const (
	// RouteFirst and RouteLast take one end of the order, and wait for it while
	// it is full. RouteFailover is RouteFirst until a send leads to nothing,
	// and takes the next one then; RouteBusyOver takes the first one with room.
	RouteFirst    Routing = "first"
	RouteLast     Routing = "last"
	RouteFailover Routing = "failover"
	RouteBusyOver Routing = "busy_over"
	// RouteRoundRobin takes the next one after that of the job's last run.
	RouteRoundRobin Routing = "round_robin"
	RouteRandom     Routing = "random"
	// RouteConsistentHash gives one key to one instance (JobSpec.RoutingKey);
	// when instances come or go, only their share of the keys moves.
	RouteConsistentHash Routing = "consistent_hash"
	// RouteLeastFrequentlyUsed and RouteLeastRecentlyUsed look at the job's
	// last RoutingWindow runs.
	RouteLeastFrequentlyUsed Routing = "least_frequently_used"
	RouteLeastRecentlyUsed   Routing = "least_recently_used"
	// RouteLeastLoaded takes the one with the smallest share of its slots, or
	// of its CPU if that is more, in use.
	RouteLeastLoaded Routing = "least_loaded"
)

// Routings are all of them.
var Routings = []Routing{
	RouteRoundRobin, RouteRandom, RouteConsistentHash, RouteLeastLoaded, RouteLeastFrequentlyUsed, RouteLeastRecentlyUsed,
	RouteFirst, RouteLast, RouteFailover, RouteBusyOver,
}

// RoutingWindow is how many of a job's newest runs count as its use of the
// instances.
const RoutingWindow = 100

// Pinned reports whether the strategy has one instance only, and waits for it.
func (r Routing) Pinned() bool { return r == RouteFirst || r == RouteLast || r == RouteFailover }

// MaxRoutingKey bounds JobSpec.RoutingKey, in bytes.
const MaxRoutingKey = 256

// checkPointer says what is wrong with a JSON pointer; empty: nothing.
func checkPointer(p string) string {
	switch {
	case len(p) > MaxRoutingKey:
		return "must not exceed 256 bytes"
	case p != "" && p[0] != '/':
		return "must be a JSON pointer into the input, such as /customer/id"
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return "has a ~ that is neither ~0 (for ~) nor ~1 (for /)"
		}
	}
	return ""
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// PointerValue returns what a JSON pointer points at in a document, in one
// spelling for equal values of a kind: a text unquoted, anything else without
// blanks. ok is false when nothing, or null, is there.
func PointerValue(document []byte, pointer string) (value string, ok bool) {
	at := json.RawMessage(document)
	for rest := pointer; rest != ""; {
		token := rest[1:]
		rest = ""
		if i := strings.IndexByte(token, '/'); i >= 0 {
			token, rest = token[:i], token[i:]
		}
		if at, ok = member(at, unescapePointer.Replace(token)); !ok {
			return "", false
		}
	}
	var text string
	if json.Unmarshal(at, &text) == nil && !bytes.Equal(bytes.TrimSpace(at), []byte("null")) {
		return text, true
	}
	var b bytes.Buffer
	if json.Compact(&b, at) != nil || b.Len() == 0 || b.String() == "null" {
		return "", false
	}
	return b.String(), true
}

func member(document json.RawMessage, name string) (json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(document, &object) == nil {
		v, ok := object[name]
		return v, ok
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(name)
	if err != nil || json.Unmarshal(document, &list) != nil || i < 0 || i >= len(list) || name != strconv.Itoa(i) {
		return nil, false
	}
	return list[i], true
}

// LineNumber is the number of a line: of all runs of an executor that the same instances
// may take. What they have to be is in the words. Without words it is the line of runs of
// which that is not known. Two lines may have one number, which makes them one line.
func LineNumber(executor ExecutorID, words ...string) int64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt(nil, int64(executor), 10))
	for _, w := range words {
		_, _ = h.Write(append([]byte{0}, w...))
	}
	return int64(h.Sum64() >> 1)
}
