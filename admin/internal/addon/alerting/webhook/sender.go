package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// Headers of a webhook request, beside those of its signature.
const (
	// HeaderDedupeKey is the same in every delivery of one event to one URL.
	HeaderDedupeKey = "Carillon-Dedupe-Key"
	// HeaderTry counts the deliveries with this key from 1.
	HeaderTry = "Carillon-Delivery-Attempt"
	// HeaderVersion is the payload's version; it is missing where a template makes
	// the body.
	HeaderVersion = "Carillon-Version"
)

const jsonType = "application/json; charset=utf-8"

// Options of a Sender.
type Options struct {
	Client *post.Client
	// Opener opens the jobs' signing secrets.
	Opener   alerting.Opener
	Language alerting.Language // of title and summary; empty = English
}

// Sender posts notices. It is safe for concurrent use.
type Sender struct{ opt Options }

var _ alerting.Sender = (*Sender)(nil)

// New returns a sender; it opens no connection.
func New(opt Options) *Sender { return &Sender{opt} }

// Channel implements alerting.Sender.
func (s *Sender) Channel() string { return alerting.ChannelWebhook }

// Timeout implements alerting.Sender.
func (s *Sender) Timeout() time.Duration { return post.Timeout }

// Lane implements alerting.Sender.
func (s *Sender) Lane(n *alerting.Notice) string { return post.Lane(n, address(n)) }

func address(n *alerting.Notice) string {
	if n.Channel != nil {
		return n.Channel.Secrets.URL
	}
	return n.Target
}

// Render implements alerting.Sender.
func (s *Sender) Render(n *alerting.Notice) (alerting.Rendered, error) {
	if n.Channel == nil || n.Channel.Templates.Body == "" {
		return alerting.Rendered{ContentType: jsonType, Body: string(alerting.NewPayload(n, n.Language(s.opt.Language)).Encode())}, nil
	}
	body, err := n.Body(n.Language(s.opt.Language))
	if err != nil {
		return alerting.Rendered{}, alerting.Permanent(err) // another text would not be what the receiver takes
	}
	kind := n.Channel.Templates.ContentType
	if kind == "" {
		kind = jsonType
	}
	return alerting.Rendered{ContentType: kind, Body: body}, nil
}

// Send implements alerting.Sender.
func (s *Sender) Send(ctx context.Context, n *alerting.Notice) error {
	rendered, err := s.Render(n)
	if err != nil {
		return err
	}
	h := http.Header{}
	h.Set("Content-Type", rendered.ContentType)
	if n.Channel == nil || n.Channel.Templates.Body == "" {
		h.Set(HeaderVersion, alerting.PayloadVersion)
	}
	h.Set(HeaderDedupeKey, n.DedupeKey)
	h.Set(HeaderTry, strconv.Itoa(n.Try))
	key, err := s.key(n)
	if err != nil {
		return err
	}
	if key != nil {
		httpcall.Sign(h, key, []byte(rendered.Body), time.Now())
	}
	if n.Channel != nil && n.Channel.Secrets.Token != "" {
		h.Set("Authorization", "Bearer "+n.Channel.Secrets.Token)
	}
	answer, err := s.opt.Client.Do(ctx, address(n), h, []byte(rendered.Body))
	if err != nil {
		return err
	}
	// A receiver that said yes and then dripped or broke off was told: what it
	// says only matters for the delivery log.
	return answer.Verdict()
}

// key signs the request; nil: it is not signed.
func (s *Sender) key(n *alerting.Notice) ([]byte, error) {
	if n.Channel != nil {
		if n.Channel.Secrets.Secret == "" {
			return nil, nil
		}
		return []byte(n.Channel.Secrets.Secret), nil
	}
	sealed := n.Job.Spec.Alert.WebhookSecret
	if len(sealed) == 0 {
		return nil, nil
	}
	key, err := s.opt.Opener.Open(n.Event.TenantID, secret.PurposeJobWebhook, int64(n.JobID()), sealed)
	if err != nil {
		// Temporary: a node with the right key can still deliver it.
		return nil, fmt.Errorf("open the signing secret: %w", err)
	}
	return key, nil
}
