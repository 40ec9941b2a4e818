// Package everyfield declares jobs with markers that have a value for every setting
// that code can declare; TestEveryFieldOfAJob compares them with what the options say.
// Refresh with go run ./executor-sdk/generate/cmd/carillon-generate in this folder.
package everyfield

import "context"

// Input is what the jobs hand to their handler.
type Input struct {
	Day string `json:"day"`
}

// Marked has the markers.
//
//carillon:timer
type Marked struct{}

// Run has a job for each kind of schedule, and two with shards.
//
//carillon:clock name=marked-plain every=1h
//carillon:clock name=marked-all description="has all" cron="0 30 2 * * *" dialect=seconds zone=Asia/Shanghai gap=skip overlap=both calendars=freeze days=workdays jitter=5s start-at=2026-01-01T00:00:00Z end-at=2100-01-01T00:00:00Z misfire=all misfire-threshold=1m misfire-window=2h misfire-max-runs=7 input=`{"day":"today"}` retries=3 retry-delay=2s retry-backoff=2.5 max-retry-delay=20s timeout=5m dispatch-timeout=30m on-lost=retry blocking=parallel parallelism=4 max-waiting=50 priority=-7 routing=consistent_hash routing-key=/day require-labels="zone=eu, !spot" prefer-labels=cache send-retries=2 send-delay=3s labels="team=books, env=prod" alert-on-failure=false alert-no-executor=false alert-emails=ops@example.com,books@example.com alert-webhook=https://alerts.example.com/hook owner=books@example.com on-success=Closed on-failure=Failed
//carillon:clock name=marked-once at=2100-01-01T00:00:00Z
//carillon:clock name=marked-instants at=2100-01-01T00:00:00Z,2100-01-02T00:00:00Z
//carillon:clock name=marked-window every=15m window=09:00-17:30
//carillon:clock name=marked-shards shards=8 before=prepare after=collect fire-timeout=2h
//carillon:clock name=marked-broadcast broadcast on-gone=move
func (Marked) Run(context.Context, Input) error { return nil }

// Closed runs after a run that succeeded.
func (Marked) Closed(context.Context) {}

// Failed runs after a run that failed.
func (Marked) Failed(context.Context, error) {}
