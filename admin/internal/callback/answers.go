package callback

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/budget"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

const (
	// answerBytes bounds the bytes of answers on a node, from the reading of a body to the
	// acknowledgement of the result. answerShare is the part of a tenant.
	answerBytes = 32 << 20
	answerShare = 16 << 20
	// An answer takes so many times its bytes. While it is read these are the body, its text, and
	// the measure of its JSON, where a byte may become six. A result is in the memory of the
	// executor, in that of its journal, and in a frame between them and the node.
	readingFactor = 8
	waitingFactor = 3
	// resultRest is what a result has beside the body.
	resultRest = 4 << 10
	// sendPatience is how long a call waits for room before it is sent. Then it is put off, which
	// costs it no attempt. readPatience is how long an answer that is there waits for room. Then
	// its run ends without the body.
	sendPatience = time.Second
	readPatience = 10 * time.Second
)

// answers bound the bytes of answers.
type answers struct {
	*budget.Budget[domain.TenantID]
	sendPatience, readPatience time.Duration
	// settled is executor.OnSettled, but for tests.
	settled func(ctx context.Context, f func())
}

func newAnswers() answers {
	return answers{budget.New[domain.TenantID](answerBytes, answerShare), sendPatience, readPatience, executor.OnSettled}
}

// open reports whether there is room for an answer. Results that the database does not take
// hold the room, and calls would only add to them.
func (a answers) open(ctx context.Context, tenant domain.TenantID) bool {
	ctx, cancel := context.WithTimeout(ctx, a.sendPatience)
	defer cancel()
	held, err := a.Take(ctx, tenant, resultRest)
	if err != nil {
		return false
	}
	held.Release()
	return true
}

// room is httpcall.Caller.Room.
func (a answers) room(tenant domain.TenantID) func(ctx context.Context, size int) (func(kept int), error) {
	return func(ctx context.Context, size int) (func(kept int), error) {
		wait, cancel := context.WithTimeout(ctx, a.readPatience)
		defer cancel()
		held, err := a.Take(wait, tenant, int64(size)*readingFactor)
		if err != nil {
			return nil, err
		}
		return func(kept int) {
			held.Shrink(int64(kept)*waitingFactor + resultRest)
			a.settled(ctx, held.Release)
		}, nil
	}
}
