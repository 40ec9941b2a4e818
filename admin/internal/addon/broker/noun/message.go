package noun

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Bounds of messages.
const (
	// MaxMessageBody is a little less than NATS and Kafka take by default.
	MaxMessageBody    = 960 << 10
	MaxMessageHeaders = 64
	maxMessageHeader  = 4 << 10
	maxMessageID      = 256
)

// PublishHandler is the handler of the built-in executor that publishes a message.
const PublishHandler = "publish"

// Message is one that a broker is to keep.
type Message struct {
	Tenant     domain.TenantID
	Connection string // name
	Target     MessageTarget
	Body       []byte
	// ContentType of Body; empty = application/json.
	ContentType string
	// ID is the same for each try of one message: brokers that can, and
	// consumers, keep only one of those that have the same.
	ID string
	// Headers are the user's. They may not begin with Carillon- or Nats-.
	Headers map[string]string
	// The rest tells consumers what the message is of; zero values are not sent.
	PlannedAt time.Time
	Key       string
	RunID     string
	Attempt   int
}

// MessageTarget says where on its broker a message belongs. Each broker has
// fields of its own; the others are refused.
type MessageTarget struct {
	Subject      string `json:"subject,omitempty" doc:"NATS"`
	Exchange     string `json:"exchange,omitempty" doc:"RabbitMQ; default: the default exchange, which routes to the queue that the routing key names"`
	RoutingKey   string `json:"routingKey,omitempty" doc:"RabbitMQ"`
	Topic        string `json:"topic,omitempty" doc:"Kafka"`
	PartitionKey string `json:"partitionKey,omitempty" doc:"Kafka; default: the message's key"`
	Stream       string `json:"stream,omitempty" doc:"Redis; NATS: the stream that must have the subject, may be left out"`
	MaxLength    int64  `json:"maxLength,omitempty" doc:"Redis: trim the stream to about so many entries; default: not"`
	Create       bool   `json:"create,omitempty" doc:"Redis: make the stream if it is missing; default: that is a failure"`
}

// Headers that go with a message.
const (
	HeaderMessageID = "Carillon-Dedupe-Key"
	HeaderPlannedAt = "Carillon-Planned-At" // RFC 3339, UTC, milliseconds
	HeaderKey       = "Carillon-Key"
	HeaderRunID     = "Carillon-Run-Id"
	HeaderAttempt   = "Carillon-Attempt"
)

// Header is one header of a message.
type Header struct{ Name, Value string }

// AllHeaders are the user's headers and ours, by name.
func (m *Message) AllHeaders() []Header {
	out := make([]Header, 0, len(m.Headers)+5)
	for name, value := range m.Headers {
		out = append(out, Header{name, value})
	}
	add := func(name, value string) {
		if value != "" {
			out = append(out, Header{name, value})
		}
	}
	add(HeaderMessageID, m.ID)
	if !m.PlannedAt.IsZero() {
		add(HeaderPlannedAt, m.PlannedAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	add(HeaderKey, m.Key)
	add(HeaderRunID, m.RunID)
	if m.Attempt > 0 {
		add(HeaderAttempt, fmt.Sprint(m.Attempt))
	}
	slices.SortFunc(out, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// CheckMessage validates a message for a broker; locations begin with "body.".
func CheckMessage(b Broker, m *Message) error {
	c := checker{new(domain.Checker)}
	c.Check(m.ID != "" && len(m.ID) <= maxMessageID && !domain.HasControl(m.ID), "body.id", m.ID, "must have 1 to 256 bytes in one line")
	c.Check(len(m.Body) <= MaxMessageBody, "body.body", nil, fmt.Sprintf("must not exceed %d bytes", MaxMessageBody))
	c.Check(len(m.ContentType) <= 255 && !domain.HasControl(m.ContentType), "body.contentType", m.ContentType, "must have at most 255 bytes in one line")
	c.Check(len(m.Key) <= maxMessageHeader && !domain.HasControl(m.Key), "body.key", nil, "must have at most 4096 bytes and no control characters")
	c.Check(len(m.Headers) <= MaxMessageHeaders, "body.headers", nil, "must not be more than 64")
	for name, value := range m.Headers {
		lower := strings.ToLower(name)
		c.Check(len(name) <= domain.MaxNameLength && isToken(name), "body.headers", name, "names have 1 to 128 letters, digits, dots, dashes or underscores")
		// Nats-Rollup, for one, removes what the stream has.
		c.Check(!strings.HasPrefix(lower, "carillon-") && !strings.HasPrefix(lower, "nats-"), "body.headers", name, "names that begin with Carillon- or Nats- are taken")
		c.Check(len(value) <= maxMessageHeader && !domain.HasControl(value), "body.headers."+name, nil, "values have at most 4096 bytes and no control characters")
	}
	c.target(b, m.Target)
	return c.Err()
}

func (c checker) target(b Broker, t MessageTarget) {
	line := func(s string, most int) bool { return s != "" && len(s) <= most && !domain.HasControl(s) }
	used := t
	switch b {
	case BrokerNATS:
		c.Check(isSubject(t.Subject), "body.target.subject", t.Subject, "must be a subject of NATS without wildcards, for example orders.cancelled")
		c.Check(t.Stream == "" || line(t.Stream, 255) && !strings.ContainsAny(t.Stream, ". *>/\\"), "body.target.stream", t.Stream, "must be a stream's name")
		used = MessageTarget{Subject: t.Subject, Stream: t.Stream}
	case BrokerRabbitMQ:
		c.Check(len(t.Exchange) <= 255 && !domain.HasControl(t.Exchange), "body.target.exchange", t.Exchange, "must have at most 255 bytes in one line")
		c.Check(len(t.RoutingKey) <= 255 && !domain.HasControl(t.RoutingKey), "body.target.routingKey", t.RoutingKey, "must have at most 255 bytes in one line")
		c.Check(t.Exchange != "" || t.RoutingKey != "", "body.target.routingKey", t.RoutingKey, "is needed where no exchange is named: it is the queue's name then")
		used = MessageTarget{Exchange: t.Exchange, RoutingKey: t.RoutingKey}
	case BrokerKafka:
		c.Check(len(t.Topic) <= 249 && isToken(t.Topic) && t.Topic != "." && t.Topic != "..", "body.target.topic", t.Topic, "must be 1 to 249 letters, digits, dots, dashes or underscores")
		c.Check(len(t.PartitionKey) <= 4096, "body.target.partitionKey", nil, "must not exceed 4096 bytes")
		used = MessageTarget{Topic: t.Topic, PartitionKey: t.PartitionKey}
	case BrokerRedis:
		c.Check(line(t.Stream, 512) && hashTagged(t.Stream), "body.target.stream", t.Stream, "must have 1 to 512 bytes in one line, with braces only around a hash tag")
		c.Check(t.MaxLength >= 0, "body.target.maxLength", t.MaxLength, "must not be negative")
		used = MessageTarget{Stream: t.Stream, MaxLength: t.MaxLength, Create: t.Create}
	}
	c.Check(used == t, "body.target", nil, "has fields of another broker than "+string(b))
}

// isToken: letters, digits, dots, dashes and underscores, as header names and
// Kafka's topics are made of.
func isToken(s string) bool {
	return s != "" && len(s) <= 249 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

func isSubject(s string) bool {
	if s == "" || len(s) > 512 || domain.HasControl(s) || strings.HasPrefix(s, "$") || strings.ContainsAny(s, " *>") {
		return false
	}
	return !slices.Contains(strings.Split(s, "."), "")
}

// hashTagged: no brace at all, or one pair with something in it. What is in
// there, or else the whole name, decides of the node that has the key.
func hashTagged(s string) bool {
	_, rest, opened := strings.Cut(s, "{")
	if !opened {
		return !strings.Contains(s, "}")
	}
	tag, after, closed := strings.Cut(rest, "}")
	return closed && tag != "" && !strings.Contains(tag, "{") && !strings.ContainsAny(after, "{}") && !strings.Contains(s[:strings.Index(s, "{")], "}")
}

// PublishInput is the input of PublishHandler. Templates are expanded in Key,
// Headers, Body and ID; where the message goes is written out.
type PublishInput struct {
	Connection string `json:"connection" required:"true" doc:"Name of the connection"`
	MessageTarget
	Key         string            `json:"key,omitempty" doc:"What the message is about, for the header Carillon-Key and Kafka's partition; may hold templates"`
	Headers     map[string]string `json:"headers,omitempty" doc:"Values may hold templates"`
	Body        json.RawMessage   `json:"body,omitempty" doc:"A text is sent as it is, anything else as JSON; may hold templates"`
	ContentType string            `json:"contentType,omitempty" doc:"Default: application/json, or text/plain for a text"`
	ID          string            `json:"id,omitempty" doc:"By what brokers and consumers know the same message again; default: the run's id"`
	Input       json.RawMessage   `json:"input,omitempty" doc:"What templates call input"`
}

// Message is what is sent, before templates are expanded.
func (in *PublishInput) Message() Message {
	return Message{
		Connection: in.Connection, Target: in.MessageTarget, Body: in.Body, ContentType: in.ContentType, ID: in.ID, Headers: in.Headers, Key: in.Key,
	}
}

// CheckTemplates: where a message goes is not for templates to say.
func (in *PublishInput) CheckTemplates() error {
	for _, text := range []string{in.Connection, in.Subject, in.Exchange, in.RoutingKey, in.Topic, in.PartitionKey, in.Stream} {
		if strings.Contains(text, "{{") {
			return domain.Invalid("body.input", "where a message goes is written out; templates are for key, headers, body and id")
		}
	}
	return nil
}

// CheckPublishInput validates one for the connection that it names. What templates
// become is judged when the message is sent.
func CheckPublishInput(broker Broker, in *PublishInput) error {
	m := in.Message()
	if m.ID == "" {
		m.ID = "the run's"
	}
	if err := in.CheckTemplates(); err != nil {
		return err
	}
	err := CheckMessage(broker, &m)
	var wrong *domain.Error
	if errors.As(err, &wrong) {
		for i := range wrong.Fields { // they lie in the input, and the target's are its own
			f := &wrong.Fields[i]
			f.Location = strings.TrimSuffix("body.input."+strings.TrimPrefix(strings.TrimPrefix(f.Location+".", "body."), "target."), ".")
		}
		wrong.Message = wrong.Fields[0].Location + ": " + wrong.Fields[0].Message
	}
	return err
}

// SameMessage returns the input of a run that repeats one that has not succeeded: it
// names the message's id, which is the first run's unless the input says another.
// What is no such input stays as it is.
func SameMessage(input []byte, first domain.ExecutionID) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || fields == nil {
		return input
	}
	var id string
	if json.Unmarshal(fields["id"], &id) == nil && id != "" {
		return input
	}
	fields["id"], _ = json.Marshal(first.String()) // a text has a form
	out, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return out
}
