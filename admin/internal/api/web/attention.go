package web

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
)

// Bilingual is a text in both languages of the UI.
type Bilingual struct {
	En string `json:"en" doc:"In English"`
	Zh string `json:"zh" doc:"In Chinese"`
}

// AttentionItem is something that a person should look at.
type AttentionItem struct {
	Kind       string    `json:"kind" enum:"maintenance,alerts_undelivered,alerts_reach_nobody,executor_offline,job_failing" doc:"What is wrong: maintenance (nothing is to start), alerts_reach_nobody (no default channel works), alerts_undelivered (the newest alert by mail or through a channel was given up), executor_offline (enabled jobs need an executor without instances), job_failing (the newest run ended badly)"`
	JobID      string    `json:"jobId,omitempty" doc:"The job; absent when it is about none"`
	ExecutorID string    `json:"executorId,omitempty" doc:"The executor; absent when it is about none"`
	Text       Bilingual `json:"text" doc:"The same for people"`
}

// MaxAttention is how many items of one kind the overview has.
const MaxAttention = 10

// Attention returns what a person of the tenant should look at. since is the beginning of
// the time that the overview is about.
type Attention func(ctx context.Context, id auth.Identity, since time.Time) ([]AttentionItem, error)
