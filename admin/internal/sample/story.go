package sample

import (
	"slices"
	"time"
)

// story says how the runs of a job went in the week.
type story struct {
	name string
	// typical is the median of the durations.
	typical time.Duration
	// fails is the share of attempts that fail with err.
	fails float64
	err   string
	// slower is how many times as long runs take at the end of the week; 0: as at its begin.
	slower float64
	// broken is how long before the end of the week all attempts begin to fail; 0: they do not.
	broken time.Duration
}

// death is how long before the end of the week the second instance of dyingJob's executor dies.
const (
	death    = 20 * time.Hour
	dyingJob = "stock-levels"
)

// stories are those of the shop's jobs (examples/sample-shop). Jobs with shards, broadcasts and the
// preview of each minute have none. Durations and errors are those of the handlers.
var stories = []story{
	{name: "abandoned-carts", typical: 3 * time.Second},
	{name: "daily-revenue-report", typical: 60 * time.Millisecond},
	{name: "exchange-rates", typical: 400 * time.Millisecond},
	{name: "export-archive", typical: 61 * time.Second},
	{name: "gdpr-deletes", typical: 15 * time.Second},
	{name: "image-cleanup", typical: 55 * time.Second},
	{name: "invoices", typical: 6 * time.Second, fails: 0.02, err: "write to the shop: database is locked"},
	{name: "label-cleanup", typical: 4 * time.Second},
	{name: "newsletter", typical: 55 * time.Second},
	{name: "night-count", typical: 40 * time.Second},
	{name: "order-mails", typical: 2 * time.Second, fails: 0.05, err: "smtp.mail.example: 451 4.7.1 try again later"},
	{name: "parcel-tracking", typical: 1500 * time.Millisecond, fails: 0.12, err: "the carrier's system answers 429: more than 60 questions a minute"},
	{name: "payout-file", typical: time.Second, broken: 23 * time.Hour, err: "sftp.bank.example: the host key SHA256:uH1tQ8 is not the known one: ask the bank, then replace known_hosts"},
	{name: "pick-lists", typical: 900 * time.Millisecond},
	{name: "price-feed-us", typical: 5 * time.Second, fails: 0.1, err: "price feed, line 4812: 12,90 is no price: the decimal mark is a point"},
	{name: "product-feed-us", typical: 45 * time.Second},
	{name: "reconcile-orders", typical: 35 * time.Second},
	{name: "reconcile-totals", typical: 40 * time.Millisecond},
	{name: "returns-check", typical: 2 * time.Second},
	{name: "search-index", typical: 3500 * time.Millisecond, slower: 2.3},
	{name: "search-rebuild", typical: 50 * time.Second},
	{name: "sitemap", typical: 7 * time.Second},
	{name: "slow-sellers", typical: 25 * time.Second},
	{name: dyingJob, typical: 3 * time.Second},
	{name: "supplier-orders", typical: 12 * time.Second},
	{name: "sync-inventory", typical: 15 * time.Millisecond, fails: 0.15, err: "the supplier's system answers 503: try again later"},
	{name: "weekly-sales", typical: 30 * time.Second},
}

// Jobs are the names of the jobs that a week has runs of.
func Jobs() []string {
	names := make([]string, len(stories))
	for i := range stories {
		names[i] = stories[i].name
	}
	return names
}

func storyOf(name string) (story, bool) {
	i := slices.IndexFunc(stories, func(s story) bool { return s.name == name })
	if i < 0 {
		return story{}, false
	}
	return stories[i], true
}
