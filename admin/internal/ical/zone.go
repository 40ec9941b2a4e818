package ical

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/schedule"
)

// maxZones bounds how many VTIMEZONEs are kept; each takes a TZID of one property.
const maxZones = 200

// zoneDefinition is what is read of a VTIMEZONE. Its rules are not: programs write them
// for the year of the export, and the tz database knows them for all years.
type zoneDefinition struct {
	id, location string // location: the IANA zone, by X-LIC-LOCATION
	offset       string // of the whole year
	changes      bool   // it has more than one offset
}

// ofZone reads a property of a VTIMEZONE or of one of its parts.
func (p *parser) ofZone(name, text string) {
	if !slices.Contains(p.open, "VTIMEZONE") {
		return
	}
	d := &p.defining
	switch name {
	case "TZID":
		d.id = text
	case "X-LIC-LOCATION", "X-TZINFO":
		d.location = text
	case "TZOFFSETTO", "TZOFFSETFROM":
		d.changes = d.changes || d.offset != "" && d.offset != text
		d.offset = text
	}
}

// zoneOf finds the zone of a TZID. It may be an IANA zone, also behind the prefix of a vendor
// (/mozilla.org/20050126_1/Europe/Berlin), or a zone of Windows. The VTIMEZONE of the file may
// name the IANA zone or have one offset.
func (p *parser) zoneOf(id string) (*time.Location, string) {
	d := p.defined[id]
	for _, name := range []string{strings.TrimPrefix(id, "/"), d.location} {
		for name != "" {
			if loc, err := schedule.LoadZone(name); err == nil {
				return loc, ""
			}
			if zone, ok := schedule.WindowsZone(name); ok {
				if loc, err := schedule.LoadZone(zone); err == nil {
					return loc, ""
				}
			}
			if len(name) > 100 {
				break
			}
			_, name, _ = strings.Cut(name, "/")
		}
	}
	if at, err := time.Parse("-0700", d.offset); err == nil && !d.changes {
		_, seconds := at.Zone()
		return time.FixedZone(shorten(id), seconds), ""
	}
	return nil, fmt.Sprintf("TZID=%q is neither an IANA zone nor one of Windows, and its VTIMEZONE has more than one offset or is not in the file before the event; %s", shorten(id), schedule.ZoneHint(id))
}
