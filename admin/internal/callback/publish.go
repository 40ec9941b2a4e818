package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// perConnection is how many messages of a connection this node has under way.
const perConnection = 128

// published is the output of a run that has published.
type published struct {
	MessageID  string `json:"messageId" doc:"What consumers find in the header Carillon-Dedupe-Key"`
	DurationMS int64  `json:"durationMs" doc:"Until the broker's confirm"`
}

// publish is the handler.
func (m *member) publish(ctx context.Context, in domain.PublishInput) (out published, err error) {
	message, err := messageOf(&in, executor.TaskFrom(ctx))
	if err != nil {
		return out, executor.Permanent(err)
	}
	message.Tenant = m.tenant
	err = m.within(ctx, "connection "+in.Connection, perConnection, func() (outcome, error) { // no host has a space
		began := time.Now()
		permanent, silent, err := m.send(ctx, message)
		out = published{MessageID: message.ID, DurationMS: time.Since(began).Milliseconds()}
		if err == nil {
			return answered, nil
		}
		err = fmt.Errorf("connection %s: %w", in.Connection, err)
		switch {
		case permanent:
			return answered, executor.Permanent(err)
		case ctx.Err() != nil && !errors.Is(context.Cause(ctx), executor.ErrTimeout):
			return unknown, context.Cause(ctx) // nobody waits for it any more
		case silent:
			return unanswered, err
		}
		return unknown, err
	})
	return out, err
}

// messageOf expands the templates.
func messageOf(in *domain.PublishInput, task executor.Task) (domain.Message, error) {
	v := httpcall.Values{Task: task, Input: in.Input}
	m := in.Message()
	if err := in.CheckTemplates(); err != nil {
		return m, err
	}
	m.PlannedAt, m.RunID, m.Attempt = task.FireTime, task.Key(), task.Attempt
	body, contentType, err := v.Body(in.Body)
	if err != nil {
		return m, fmt.Errorf("body: %w", err)
	}
	if m.Body = body; m.ContentType == "" {
		m.ContentType = contentType
	}
	if m.Key, err = v.Expand(in.Key); err != nil {
		return m, fmt.Errorf("key: %w", err)
	}
	if m.ID, err = v.Expand(in.ID); err != nil {
		return m, fmt.Errorf("id: %w", err)
	}
	if m.ID == "" {
		m.ID = task.Key()
	}
	m.Headers = make(map[string]string, len(in.Headers))
	for name, template := range in.Headers {
		if m.Headers[name], err = v.Expand(template); err != nil {
			return m, fmt.Errorf("headers: %s: %w", name, err)
		}
	}
	return m, nil
}
