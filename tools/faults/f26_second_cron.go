package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/verify/expand"
)

// f26 compares twenty years of fire times in sixty zones, as the binary prints
// them, with the second, brute-force implementation. No load and no database:
// the fault is what governments do to clocks.
func f26(ctx context.Context, s *stage) error {
	zones := strings.Fields(dstZones)
	expressions := []struct{ dialect, expr string }{
		{"standard", "30 2 * * *"},             // in the hour that is left out or comes twice
		{"standard", "*/30 0-3 * * 0"},         // around midnight and after, on the day of most changes
		{"seconds", "59 59 1 * * *"},           // just before
		{"quartz", "0 0 0 L * ?"},              // midnights that do not exist
		{"quartz", "0 15 3 ? * 1L"},            // the last Sunday of the month
		{"quartz", "30 0 2 ? 3,10 1#2 *"},      // the second Sunday of two months
		{"standard", "0 12 29 2 *"},            // once in four years
		{"quartz", "0 0/20 1-2 LW 3-11 ? *"},   // last working days
		{"standard", "15 1,2,3 1-7,25-31 * 6"}, // either day of month or Saturday
	}
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(20, 0, 0)
	var mu sync.Mutex
	var wrong problems
	fires := 0 // none of them is run: they are no targets
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, zone := range zones {
		group.Go(func() error {
			for _, e := range expressions {
				n, diff, err := s.compare(gctx, zone, e.dialect, e.expr, from, to)
				if err != nil {
					return err
				}
				mu.Lock()
				fires += n
				s.result.Injected++
				if diff != "" {
					wrong.add("mismatches", "%s in %s: %s", e.expr, zone, diff)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	mismatches := wrong.count["mismatches"]
	s.result.Figures["mismatches"], s.result.Figures["zones"] = mismatches, len(zones)
	s.figure("%d mismatches (goal 0) in %d fire times: %d expressions × %d zones × 20 years", mismatches, fires, len(expressions), len(zones))
	return wrong.err()
}

// compare returns the number of fire times, and the first difference.
func (s *stage) compare(ctx context.Context, zone, dialect, expr string, from, to time.Time) (n int, diff string, err error) {
	second, err := expand.New(expand.Spec{Kind: "cron", Expr: expr, Dialect: dialect, Zone: zone})
	if err != nil {
		return 0, "", err
	}
	want := second.Between(from.UnixMilli()+1, to.UnixMilli())
	got, err := s.printed(ctx, zone, dialect, expr, from, to)
	if err != nil {
		return 0, "", err
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return i, fmt.Sprintf("the engine ends before %s", time.UnixMilli(want[i]).UTC()), nil
		case i >= len(want):
			return i, fmt.Sprintf("the engine goes on with %s", time.UnixMilli(got[i]).UTC()), nil
		case got[i] != want[i]:
			return i, fmt.Sprintf("%s and %s", time.UnixMilli(got[i]).UTC(), time.UnixMilli(want[i]).UTC()), nil
		case i > 0 && got[i] <= got[i-1]:
			return i, fmt.Sprintf("%s comes twice", time.UnixMilli(got[i]).UTC()), nil
		}
	}
	return len(want), "", nil
}

// printed asks the binary, page by page.
func (s *stage) printed(ctx context.Context, zone, dialect, expr string, from, to time.Time) (got []int64, err error) {
	const page = 1000
	for {
		out, err := exec.CommandContext(ctx, s.set.binary, "cron", "next", "--tz", zone, "--dialect", dialect,
			"--from", from.Format(time.RFC3339), "-n", fmt.Sprint(page), expr).Output()
		if err != nil {
			return nil, fmt.Errorf("carillon cron next %q in %s: %w", expr, zone, err)
		}
		lines := 0
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); line == "none" {
				return got, nil
			}
			lines++
			if from, err = time.Parse(time.RFC3339, line); err != nil {
				return nil, err
			}
			if from.After(to) {
				return got, nil
			}
			got = append(got, from.UnixMilli())
		}
		if lines < page {
			return got, nil
		}
	}
}

// dstZones are sixty zones: on both hemispheres, with offsets of halves and
// quarters of an hour, changes at midnight and at other hours, of half an hour,
// around Ramadan, on the date line, and without any change.
const dstZones = `
Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Johannesburg Africa/Lagos
America/Adak America/Anchorage America/Argentina/Buenos_Aires America/Asuncion America/Bogota
America/Caracas America/Chicago America/Denver America/Goose_Bay America/Halifax
America/Havana America/Los_Angeles America/Mexico_City America/New_York America/Nuuk
America/Phoenix America/Port-au-Prince America/Santiago America/Sao_Paulo America/Scoresbysund
America/St_Johns Antarctica/Troll Asia/Amman Asia/Beirut Asia/Dhaka
Asia/Gaza Asia/Jerusalem Asia/Kathmandu Asia/Kolkata Asia/Pyongyang
Asia/Seoul Asia/Shanghai Asia/Tashkent Asia/Tehran Asia/Tokyo
Atlantic/Azores Atlantic/Reykjavik Australia/Adelaide Australia/Brisbane Australia/Eucla
Australia/Lord_Howe Australia/Sydney Europe/Berlin Europe/Chisinau Europe/Dublin
Europe/Istanbul Europe/London Europe/Moscow Pacific/Apia Pacific/Auckland
Pacific/Chatham Pacific/Easter Pacific/Kiritimati Pacific/Norfolk Pacific/Tongatapu
`
