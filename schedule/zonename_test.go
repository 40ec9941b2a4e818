package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestZonesThatWerePerhapsMeant(t *testing.T) {
	for name, want := range map[string]string{
		"asia/shanghai": "did you mean Asia/Shanghai?", "ASIA/SHANGHAI": "did you mean Asia/Shanghai?", "Asia/Shangai": "did you mean Asia/Shanghai?",
		"Shanghai": "did you mean Asia/Shanghai?", "Asia/Beijing": "did you mean Asia/Shanghai?", "new york": "did you mean America/New_York?",
		"China Standard Time": "did you mean Asia/Shanghai?", "w. europe standard time": "did you mean Europe/Berlin?",
		"utc": "did you mean UTC?", "europe/amsterdam": "did you mean Europe/Amsterdam?", "us/eastern": "did you mean US/Eastern?", "right/Europe/Berlin": "did you mean Europe/Berlin?",
		"UTC+8": "Etc/GMT-8, which is always UTC+8", "GMT-05:00": "Etc/GMT+5, which is always UTC-5", "+0530": "like Asia/Kolkata", "UTC+0": "did you mean UTC?", "UTC+99": "like Asia/Kolkata",
		"": "write a name", "Local": "write a name", "Mars/Olympus": "write a name", "posixrules": "write a name", "Factory": "write a name",
		"right/UTC": "did you mean", "localtime": "write a name", strings.Repeat("x", 1000): "write a name", "../etc/passwd": "write a name",
	} {
		if _, err := LoadZone(name); err == nil || !strings.Contains(err.Error(), "is no time zone; ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestWindowsZones(t *testing.T) {
	if n := len(windowsZone()); n < 135 {
		t.Errorf("%d zones", n)
	}
	for name, zone := range windowsZone() {
		if _, err := time.LoadLocation(zone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if zone, ok := WindowsZone("China Standard Time"); !ok || zone != "Asia/Shanghai" {
		t.Error(zone, ok)
	}
}
