package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
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
	Opener   notify.Opener
	Language notify.Language // of title and summary; empty = English
}

// Sender posts notices. It is safe for concurrent use.
type Sender struct{ opt Options }

var _ notify.Sender = (*Sender)(nil)

// New returns a sender; it opens no connection.
func New(opt Options) *Sender { return &Sender{opt} }

// Channel implements notify.Sender.
func (s *Sender) Channel() string { return notify.ChannelWebhook }

// Timeout implements notify.Sender.
func (s *Sender) Timeout() time.Duration { return post.Timeout }

// Lane implements notify.Sender.
func (s *Sender) Lane(n *notify.Notice) string { return post.Lane(n, address(n)) }

func address(n *notify.Notice) string {
	if n.Channel != nil {
		return n.Channel.Secrets.URL
	}
	return n.Target
}

// Render implements notify.Sender.
func (s *Sender) Render(n *notify.Notice) (notify.Rendered, error) {
	if n.Channel == nil || n.Channel.Templates.Body == "" {
		return notify.Rendered{ContentType: jsonType, Body: string(notify.NewPayload(n, n.Language(s.opt.Language)).Encode())}, nil
	}
	body, err := n.Body(n.Language(s.opt.Language))
	if err != nil {
		return notify.Rendered{}, notify.Permanent(err) // another text would not be what the receiver takes
	}
	kind := n.Channel.Templates.ContentType
	if kind == "" {
		kind = jsonType
	}
	return notify.Rendered{ContentType: kind, Body: body}, nil
}

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, n *notify.Notice) error {
	rendered, err := s.Render(n)
	if err != nil {
		return err
	}
	h := http.Header{}
	h.Set("Content-Type", rendered.ContentType)
	if n.Channel == nil || n.Channel.Templates.Body == "" {
		h.Set(HeaderVersion, notify.PayloadVersion)
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
func (s *Sender) key(n *notify.Notice) ([]byte, error) {
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
