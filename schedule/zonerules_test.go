package schedule

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestZoneSource(t *testing.T) {
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	zone := func(more ...string) map[string]string {
		out := map[string]string{"Europe/London": "TZif"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	debian := folder(zone("tzdata.zi", "# version 2026b\n# This zic input file is in the public domain.\n"))
	mac := folder(zone("+VERSION", "2025c\n"))
	mute := folder(zone("tzdata.zi", "# redo posix_only\n"))
	archive := filepath.Join(folder(nil), "zoneinfo.zip")
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		named   string
		folders []string
		want    ZoneRules
	}{
		"as named":             {mac, []string{debian}, ZoneRules{Source: mac, Version: "2025c"}},
		"a zip says nothing":   {archive, []string{debian}, ZoneRules{Source: archive}},
		"named, but not there": {"/no/such", []string{debian}, ZoneRules{Source: debian, Version: "2026b"}},
		"the first with zones": {"", []string{folder(nil), mute, debian}, ZoneRules{Source: mute}},
		"none on the machine":  {"", []string{folder(nil)}, ZoneRules{Source: "embedded, " + runtime.Version()}},
	} {
		if got := zoneSource(c.named, c.folders); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The digest is of the rules: where they come from does not matter, and a zone
// with other rules does.
func TestZoneDigest(t *testing.T) {
	same := zoneDigest(time.LoadLocation)
	if got := zoneDigest(LoadZone); got != same || len(got) != 12 {
		t.Errorf("%s, want %s", got, same)
	}
	renamed := func(name string) (*time.Location, error) {
		if name == "Africa/Abidjan" { // never has summer time: other names for the same offset
			return time.FixedZone("other", 0), nil
		}
		return time.LoadLocation(name)
	}
	if got := zoneDigest(renamed); got != same {
		t.Errorf("another abbreviation: %s, want %s", got, same)
	}
	if n := len(strings.Fields(zoneNames)); n < 300 {
		t.Errorf("%d zones", n)
	}
	for name, other := range map[string]func() (*time.Location, error){
		"without summer time": func() (*time.Location, error) { return time.FixedZone("", 0), nil },
		"of another place":    func() (*time.Location, error) { return time.LoadLocation("Europe/Berlin") },
		"unknown":             func() (*time.Location, error) { return nil, errors.New("no such zone") },
	} {
		got := zoneDigest(func(zone string) (*time.Location, error) {
			if zone == "Africa/Casablanca" {
				return other()
			}
			return time.LoadLocation(zone)
		})
		if got == same {
			t.Errorf("Casablanca %s: the digest is the same", name)
		}
	}
}
