package ical

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A calendar as Outlook writes it, with zones of Windows.
func TestOutlook(t *testing.T) {
	text, err := os.ReadFile("testdata/outlook.ics")
	require.NoError(t, err)
	events, err := Parse(string(text), time.UTC, time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	first := map[string]string{}
	for _, e := range events {
		if first[e.Summary] == "" {
			first[e.Summary] = e.From.Format(time.RFC3339) + " " + e.To.Format(time.RFC3339)
		}
	}
	require.Equal(t, "2027-04-30T16:00:00Z 2027-05-05T16:00:00Z", first["A summary that is folded over the line as Outlook does it with long texts and 中文"])
	require.Equal(t, "2026-12-05T21:00:00Z 2026-12-06T01:00:00Z", first["Maintenance"])
	require.Equal(t, "2026-11-26T00:00:00Z 2026-11-27T00:00:00Z", first["Fourth Thursday"])
}

func TestNamesOfZones(t *testing.T) {
	zone := func(lines ...string) string {
		return "BEGIN:VTIMEZONE\n" + strings.Join(lines, "\n") + "\nEND:VTIMEZONE\n"
	}
	part := func(from, to string) string {
		return "BEGIN:STANDARD\nTZOFFSETFROM:" + from + "\nTZOFFSETTO:" + to + "\nEND:STANDARD"
	}
	for name, c := range map[string]struct{ id, zone, want string }{
		"Windows":                       {"China Standard Time", "", "2027-05-01T04:00:00Z"},
		"Windows, quoted, in summer":    {`"W. Europe Standard Time"`, "", "2027-05-01T10:00:00Z"},
		"the prefix of a vendor":        {"/mozilla.org/20050126_1/Europe/Berlin", "", "2027-05-01T10:00:00Z"},
		"another vendor's":              {"/freeassociation.sourceforge.net/Asia/Shanghai", "", "2027-05-01T04:00:00Z"},
		"the file says which":           {"Office", zone("TZID:Office", "X-LIC-LOCATION:Asia/Tokyo", part("+0900", "+0900")), "2027-05-01T03:00:00Z"},
		"one offset":                    {"Customized Time Zone", zone("TZID:Customized Time Zone", part("+0530", "+0530")), "2027-05-01T06:30:00Z"},
		"two offsets":                   {"Customized Time Zone", zone("TZID:Customized Time Zone", part("+0200", "+0100")), "more than one offset"},
		"nothing is known":              {"Customized Time Zone", "", "neither an IANA zone nor one of Windows"},
		"a name that was perhaps meant": {"asia/shanghai", "", "did you mean Asia/Shanghai?"},
		"the machine's own":             {"Local", "", "neither an IANA zone"},
		"a folder of the database":      {"right/Europe/Berlin/..", "", "neither an IANA zone"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := Parse("BEGIN:VCALENDAR\n"+c.zone+"BEGIN:VEVENT\nDTSTART;TZID="+c.id+":20270501T120000\nEND:VEVENT\nEND:VCALENDAR\n", time.UTC, time.Unix(0, 0))
			if err != nil {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.Equal(t, c.want, events[0].From.Format(time.RFC3339))
		})
	}
}
