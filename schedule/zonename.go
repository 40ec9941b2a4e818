package schedule

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// windowsZones has a line NAME=ZONE for each time zone of Windows. The facts are those of
// windowsZones.xml of the Unicode CLDR, the rows of territory 001.
//
//go:embed windowszones.txt
var windowsZones string

var windowsZone = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(windowsZones) {
		name, zone, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[strings.ToLower(name)] = zone
	}
	return out
})

// WindowsZone returns the IANA zone of a Windows zone, such as China Standard Time.
func WindowsZone(name string) (zone string, ok bool) {
	zone, ok = windowsZone()[strings.ToLower(name)]
	return zone, ok
}

// noPlace reports files of a tz database that hold no zone of a place: the machine's own
// zone, templates, and copies that count leap seconds or leave them out.
func noPlace(name string) bool {
	switch name {
	case "", "Local", "localtime", "posixrules", "Factory":
		return true
	}
	return strings.HasPrefix(name, "right/") || strings.HasPrefix(name, "posix/")
}

// fixedOffset is how people write one: UTC+8, GMT-05:00, +0530, UTC 8.
var fixedOffset = regexp.MustCompile(`(?i)^(?:utc|gmt|z)?\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?$`)

// otherNames are cities that people take for zones, and have none of their own.
var otherNames = map[string]string{
	"beijing": "Asia/Shanghai", "peking": "Asia/Shanghai", "shenzhen": "Asia/Shanghai", "guangzhou": "Asia/Shanghai",
	"mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "san_francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles",
	"washington": "America/New_York", "boston": "America/New_York", "munich": "Europe/Berlin", "frankfurt": "Europe/Berlin", "geneva": "Europe/Zurich",
	"cst": "Asia/Shanghai or America/Chicago", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "edt": "America/New_York", "bst": "Europe/London", "cest": "Europe/Berlin",
}

// ZoneHint says what to write in place of a name that is no zone.
func ZoneHint(name string) string {
	const plain = "write a name like Asia/Shanghai or UTC"
	if m := fixedOffset.FindStringSubmatch(strings.TrimSpace(name)); m != nil {
		return offsetHint(m[1], m[2], m[3])
	}
	if meant := nearZone(name); meant != "" {
		return "did you mean " + meant + "?"
	}
	return plain
}

// offsetHint is of an offset. The names of the tz database have the sign the other way round.
func offsetHint(sign, hours, minutes string) string {
	turned := map[string]string{"+": "-", "-": "+"}[sign]
	h, err := strconv.Atoi(hours)
	zone := fmt.Sprintf("Etc/GMT%s%d", turned, h)
	if _, unknown := time.LoadLocation(zone); err != nil || unknown != nil || minutes != "" && minutes != "00" {
		return "write the name of a place that has this offset, like Asia/Kolkata"
	}
	if h == 0 {
		return "did you mean UTC?"
	}
	return fmt.Sprintf("write the name of a place, like Asia/Shanghai, which follows changes of its clocks, or %s, which is always UTC%s%d (the sign is the other way round there)", zone, sign, h)
}

// nearZone finds the zone that was perhaps meant; "": none.
func nearZone(name string) string {
	if zone, ok := WindowsZone(strings.TrimSpace(name)); ok {
		return strings.TrimPrefix(zone, "Etc/")
	}
	for _, prefix := range []string{"right/", "posix/"} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			name = rest
		}
	}
	written := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	if written == "" || len(written) > 64 {
		return ""
	}
	city := written[strings.LastIndex(written, "/")+1:]
	if zone := otherNames[city]; zone != "" {
		return zone
	}
	best, least := "", 3 // two letters may be wrong
	for zone := range strings.Lines(zoneNames) {
		zone = strings.TrimSpace(zone)
		low := strings.ToLower(zone)
		if low == written || low[strings.LastIndex(low, "/")+1:] == written {
			return zone
		}
		if d := distance(low, written, least); d < least && len(written) > 5 {
			best, least = zone, d
		}
	}
	if cased := titled(written); cased != name && !noPlace(cased) {
		if _, err := time.LoadLocation(cased); err == nil { // another name of a zone
			return cased
		}
	}
	return best
}

// titled writes a zone's name as the tz database does: Europe/Isle_of_Man, UTC.
func titled(low string) string {
	if area, place, found := strings.Cut(low, "/"); !found && len(low) <= 4 {
		return strings.ToUpper(low)
	} else if area == "us" {
		return "US/" + titled(place)
	}
	out, first := []byte(low), true
	for i, c := range out {
		if first && c >= 'a' && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
		first = c == '/' || c == '_' || c == '-'
	}
	return strings.NewReplacer("_Of_", "_of_", "_Es_", "_es_", "-Au-", "-au-", "Gmt", "GMT", "Utc", "UTC").Replace(string(out))
}

// distance counts the letters that have to be changed, added or left out to make b of a;
// limit, if that many or more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return min(row[len(b)], limit)
}
