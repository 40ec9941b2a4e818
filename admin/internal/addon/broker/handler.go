package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
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

// SendFunc returns once the broker keeps the message. permanent: another try would fail in the
// same way. silent: the broker has not answered.
type SendFunc func(ctx context.Context, m noun.Message) (permanent, silent bool, err error)

// finder finds connections.
type finder interface {
	FindConnectionByName(ctx context.Context, tenant domain.TenantID, name string) (noun.Connection, error)
	Names(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
}

// handler is the kind of handler that publishes.
func handler(from finder, send SendFunc, try tryFunc, newID func() int64) nodehandler.Handler {
	return nodehandler.Handler{
		Name: noun.PublishHandler, Repeat: noun.SameMessage,
		// The message has one id over all attempts, and the broker may be restarting.
		CallRetry: domain.Retry{MaxAttempts: 10, Delay: 5 * time.Second, Backoff: 2, MaxDelay: 10 * time.Minute},
		Inputs: func(ctx context.Context, tenant domain.TenantID) func(input []byte) error {
			brokers := map[string]noun.Broker{} // by connection
			return func(input []byte) error { return checkPublish(ctx, from, tenant, input, brokers) }
		},
		Connections: &nodehandler.Connections{
			Find: func(ctx context.Context, tenant domain.TenantID, name string) (int64, error) {
				c, err := from.FindConnectionByName(ctx, tenant, name)
				return c.ID, err
			},
			Names: from.Names,
		},
		Try: func(ctx context.Context, tenant domain.TenantID, input []byte) (nodehandler.Trial, error) {
			var in noun.PublishInput
			if err := json.Unmarshal(input, &in); err != nil {
				return nodehandler.Trial{}, domain.Invalid("body.callback", "%v", err)
			}
			in.ID = testID(newID)
			m, err := messageOf(&in, executor.Task{Attempt: 1, FireTime: time.Now().UTC(), JobName: "trial"})
			if err != nil {
				return nodehandler.Trial{}, err
			}
			m.Tenant, m.RunID = tenant, ""
			return tried(ctx, try, m), nil
		},
		Add: func(ex *executor.Executor, tenant domain.TenantID, within nodehandler.Within) {
			m := member{tenant, send, within}
			executor.Handle(ex, noun.PublishHandler, m.publish, executor.Idempotent(), executor.Description("Publishes a message to a broker, by one of the tenant's connections, and awaits its confirm. The run's id is the message's"))
		},
	}
}

// tryFunc sends a message by its connection as it is now. permanent: another try would fail in
// the same way.
type tryFunc func(ctx context.Context, m noun.Message) (permanent bool, err error)

// testID is the id of a message that no run sends.
func testID(newID func() int64) string { return "test-" + strconv.FormatInt(newID(), 10) }

// tried sends a message and tells what came of it.
func tried(ctx context.Context, try tryFunc, m noun.Message) nodehandler.Trial {
	ctx, cancel := context.WithTimeout(ctx, messageTestTimeout)
	defer cancel()
	began := time.Now()
	_, err := try(ctx, m)
	out := nodehandler.Trial{OK: err == nil, Took: time.Since(began), Timeout: messageTestTimeout}
	if err != nil {
		out.Message = err.Error()
	}
	return out
}

// checkPublish holds an input of the handler that publishes against its connection.
// brokers are those of connections that were looked up before.
func checkPublish(ctx context.Context, from finder, tenant domain.TenantID, input []byte, brokers map[string]noun.Broker) error {
	var in noun.PublishInput
	if err := json.Unmarshal(input, &in); err != nil {
		return domain.Invalid("body.input", "%v", err)
	}
	broker, known := brokers[in.Connection]
	if !known {
		c, err := from.FindConnectionByName(ctx, tenant, in.Connection)
		if domain.Is(err, domain.CodeNotFound) {
			return web.NotThere("body.input.connection", "connection", in.Connection)
		}
		if err != nil {
			return err
		}
		broker = c.Spec.Broker
		brokers[in.Connection] = broker
	}
	return noun.CheckPublishInput(broker, &in)
}

// member publishes for one tenant.
type member struct {
	tenant domain.TenantID
	send   SendFunc
	within nodehandler.Within
}

// publish is the handler.
func (m *member) publish(ctx context.Context, in noun.PublishInput) (out published, err error) {
	message, err := messageOf(&in, executor.TaskFrom(ctx))
	if err != nil {
		return out, executor.Permanent(err)
	}
	message.Tenant = m.tenant
	err = m.within(ctx, "connection "+in.Connection, perConnection, func() (nodehandler.Outcome, error) { // no host has a space
		began := time.Now()
		permanent, silent, err := m.send(ctx, message)
		out = published{MessageID: message.ID, DurationMS: time.Since(began).Milliseconds()}
		if err == nil {
			return nodehandler.Answered, nil
		}
		err = fmt.Errorf("connection %s: %w", in.Connection, err)
		switch {
		case permanent:
			return nodehandler.Answered, executor.Permanent(err)
		case ctx.Err() != nil && !errors.Is(context.Cause(ctx), executor.ErrTimeout):
			return nodehandler.Unknown, context.Cause(ctx) // the call has ended
		case silent:
			return nodehandler.Unanswered, err
		}
		return nodehandler.Unknown, err
	})
	return out, err
}

// messageOf expands the templates.
func messageOf(in *noun.PublishInput, task executor.Task) (noun.Message, error) {
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
