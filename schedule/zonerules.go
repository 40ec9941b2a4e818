package schedule

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

// ZoneRules says which rules of time zones this process computes with. They are
// data with a version of their own, which machines may have in several.
type ZoneRules struct {
	// Source is the folder or zip file that they are read from, or "embedded" with
	// the version of Go that they came with.
	Source string
	// Version is what the source calls itself, such as 2026a; "" when it does not say.
	Version string
	// Digest is a short hash of what the rules say for the zones of the world from
	// 2000 to 2037. It depends on nothing else: two processes with the same digest
	// compute the same fire times.
	Digest string
}

// String is the version, or what stands in for it, and where it comes from.
func (r ZoneRules) String() string {
	if r.Version == "" {
		return r.Source + ", rules " + r.Digest
	}
	return r.Version + " (" + r.Source + "), rules " + r.Digest
}

// CurrentZoneRules looks once: what is loaded stays until the process ends. The
// first call takes some 50 ms.
var CurrentZoneRules = sync.OnceValue(func() ZoneRules {
	out := zoneSource(os.Getenv("ZONEINFO"), zoneFolders)
	out.Digest = zoneDigest(time.LoadLocation)
	return out
})

// zoneFolders are those where package time looks on Unix, in its order
// (platformZoneSources in zoneinfo_unix.go of Go 1.26), after ZONEINFO and before
// what is embedded.
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

func zoneSource(named string, folders []string) ZoneRules {
	if strings.HasSuffix(named, ".zip") {
		if _, err := os.Stat(named); err == nil { //nolint:gosec // the operator's environment, as package time reads it
			return ZoneRules{Source: named}
		}
	}
	if named != "" {
		folders = append([]string{named}, folders...)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "Europe", "London")); err == nil { //nolint:gosec // the same
			return ZoneRules{Source: folder, Version: zoneVersion(folder)}
		}
	}
	return ZoneRules{Source: "embedded, " + runtime.Version()}
}

// zoneVersion reads what installations of the tz database leave beside it.
func zoneVersion(folder string) string {
	for _, file := range []string{"+VERSION", "tzdata.zi"} {
		f, err := os.Open(filepath.Join(folder, file)) //nolint:gosec // the same
		if err != nil {
			continue
		}
		head := make([]byte, 64)
		n, _ := f.Read(head)
		f.Close()
		line, _, _ := strings.Cut(string(head[:n]), "\n")
		if version := strings.TrimSpace(strings.TrimPrefix(line, "# version ")); version != "" && !strings.ContainsAny(version, " #") {
			return version
		}
	}
	return ""
}

// zoneNames are the zones of zone1970.tab of the tz database, 2025b: each other
// name is an alias of one of them since 1970.
//
//go:embed zones.txt
var zoneNames string

var (
	digestFrom = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	digestTo   = time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC) // as far as older files list changes
)

// zoneDigest hashes each change of an offset. Abbreviations, and what is called
// summer time, differ between builds of the same rules.
func zoneDigest(load func(string) (*time.Location, error)) string {
	h := sha256.New()
	for name := range strings.FieldsSeq(zoneNames) {
		h.Write([]byte(name))
		loc, err := load(name)
		if err != nil {
			h.Write([]byte{'?'})
			continue
		}
		hashZone(h, loc)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// digestStep is shorter than any time for which a zone changes its offset and
// takes it back: the shortest, around Ramadan, are four weeks.
const digestStep = 4 * 24 * 3600

// hashZone asks for offsets only. (Time.ZoneBounds of Go 1.26 gives the same bound
// again and again for some zones whose files end in a rule.)
func hashZone(h hash.Hash, loc *time.Location) {
	offset := func(at int64) int {
		_, seconds := time.Unix(at, 0).In(loc).Zone()
		return seconds
	}
	note := func(at int64, offset int) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(at)))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(offset)))
	}
	at, last := digestFrom.Unix(), offset(digestFrom.Unix())
	note(at, last)
	for ; at < digestTo.Unix(); at += digestStep {
		next := offset(at + digestStep)
		if next == last {
			continue
		}
		within := sort.Search(digestStep, func(i int) bool { return offset(at+int64(i)) != last })
		note(at+int64(within), next)
		last = next
	}
}
