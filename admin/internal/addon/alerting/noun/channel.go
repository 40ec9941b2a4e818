package noun

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ChannelKind is a means by which alerts are told.
type ChannelKind string

// The kinds of channels.
const (
	ChannelEmail     ChannelKind = "email"
	ChannelWebhook   ChannelKind = "webhook"
	ChannelDingTalk  ChannelKind = "dingtalk"
	ChannelFeishu    ChannelKind = "feishu" // Lark outside of China
	ChannelWeCom     ChannelKind = "wecom"
	ChannelSlack     ChannelKind = "slack" // and what takes the same messages
	ChannelTeams     ChannelKind = "teams"
	ChannelTelegram  ChannelKind = "telegram"
	ChannelPagerDuty ChannelKind = "pagerduty" // Events API v2
	ChannelOpsgenie  ChannelKind = "opsgenie"
)

// ChannelKinds are all of them.
var ChannelKinds = []ChannelKind{
	ChannelEmail, ChannelWebhook, ChannelDingTalk, ChannelFeishu, ChannelWeCom, ChannelSlack, ChannelTeams, ChannelTelegram, ChannelPagerDuty, ChannelOpsgenie,
}

// Languages of what is written for people.
const (
	LanguageEnglish = "en"
	LanguageChinese = "zh"
)

// Bounds of alert channels.
const (
	// MaxAlertChannels is how many a tenant may have.
	MaxAlertChannels  = 64
	MaxChannelEmails  = 16
	MaxMentions       = 20
	MaxTitleTemplate  = 1 << 10
	MaxTextTemplate   = 16 << 10
	maxChannelSecret  = 1 << 10
	maxChannelMention = 64
)

// channelTraits are the settings that a kind has; those that it does not have are
// refused, so that nobody relies on one that does nothing.
type channelTraits struct {
	url, emails, secret, token, tokenNeeded, baseURL, chat, mentions, mentionAll, text, html, body bool
}

var traitsOfChannels = map[ChannelKind]channelTraits{
	ChannelEmail:     {emails: true, text: true, html: true},
	ChannelWebhook:   {url: true, secret: true, token: true, body: true},
	ChannelDingTalk:  {url: true, secret: true, mentions: true, mentionAll: true, text: true},
	ChannelFeishu:    {url: true, secret: true, mentions: true, mentionAll: true, text: true},
	ChannelWeCom:     {url: true, mentions: true, mentionAll: true, text: true},
	ChannelSlack:     {url: true, mentions: true, mentionAll: true, text: true},
	ChannelTeams:     {url: true, text: true},
	ChannelTelegram:  {token: true, tokenNeeded: true, baseURL: true, chat: true, text: true},
	ChannelPagerDuty: {token: true, tokenNeeded: true, baseURL: true, text: true},
	ChannelOpsgenie:  {token: true, tokenNeeded: true, baseURL: true, text: true},
}

// AlertChannel says by which means, and to whom, a tenant is told.
type AlertChannel struct {
	ID       domain.ChannelID
	TenantID domain.TenantID
	// Version grows by one with each edit.
	Version int64
	Spec    AlertChannelSpec
	// Secrets are sealed AlertChannelSecrets; empty: it has none.
	Secrets []byte
	// Host, HasSecret and HasToken say what is in there, without opening it. Host
	// is scheme and host of its URL.
	Host                 string
	HasSecret, HasToken  bool
	CreatedAt, UpdatedAt time.Time
	CreatedBy, UpdatedBy string
}

// AlertChannelSpec is what anybody may read who may read the tenant.
type AlertChannelSpec struct {
	Name        string
	Description string
	Kind        ChannelKind // fixed: another kind is another channel
	// Enabled: what is to go through a channel that is not fails, and says so.
	Enabled bool
	// Language of its texts; empty = the server's.
	Language string
	// Emails are the addresses of a mail channel, each told by a mail of its own.
	Emails []string
	// BaseURL is where the product's interface is, if it is not where the
	// product's own is.
	BaseURL string
	// ChatID and ThreadID are Telegram's. ThreadID is a topic in a group; 0 = none.
	ChatID   string
	ThreadID int64
	// Mentions are who is called by name, by the product's ids: DingTalk's mobile
	// numbers, Feishu's open ids, WeCom's user ids, Slack's member ids.
	Mentions   []string
	MentionAll bool
	Templates  ChannelTemplates
}

// ChannelTemplates replace the texts that a channel has by itself; empty: they do not.
type ChannelTemplates struct {
	Title string // of mails and of messages
	Text  string // of messages, and the plain part of mails
	HTML  string // the HTML part of mails
	// Body is that of a webhook's request, ContentType what it is; empty = JSON.
	Body        string
	ContentType string
}

// AlertChannelSecrets are kept sealed.
type AlertChannelSecrets struct {
	// URL is where messages are posted: in most of them is a key.
	URL string `json:"url,omitempty"`
	// Secret signs: webhooks, DingTalk, Feishu. It is not sent.
	Secret string `json:"secret,omitempty"`
	// Token says who sends: Telegram's bot, PagerDuty's routing key, Opsgenie's
	// API key, a webhook's bearer token.
	Token string `json:"token,omitempty"`
}

// Host is scheme and host of the URL, by which people recognize it.
func (s *AlertChannelSecrets) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil || s.URL == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// RenderedAlert is a message as its receiver gets it.
type RenderedAlert struct {
	Title       string // a mail's subject
	ContentType string // of Body
	Body        string // a mail's plain part
	HTML        string // a mail's HTML part
}

// ChannelTrial is what came of a message that a channel was tried with.
type ChannelTrial struct {
	Delivered bool
	Permanent bool   // trying again would end the same way
	Message   string // why it was not delivered
	Rendered  RenderedAlert
}

// Deliveries are what it takes to tell an event through the channel: one for
// each address that can fail by itself.
func (c *AlertChannel) Deliveries(event int64) []Delivery {
	targets := c.Spec.Emails
	if c.Spec.Kind != ChannelEmail {
		targets = []string{c.Spec.Name}
	}
	out := make([]Delivery, len(targets))
	for i, target := range targets {
		out[i] = Delivery{TenantID: c.TenantID, EventID: event, Channel: string(c.Spec.Kind), ChannelID: c.ID, Target: target, State: DeliveryPending}
	}
	return out
}

// CheckAlertChannel validates a channel. Whether its address may be reached shows
// when it is dialled; templates are held against samples by who renders them.
func CheckAlertChannel(s *AlertChannelSpec, secrets *AlertChannelSecrets) error {
	var c checker
	traits, known := traitsOfChannels[s.Kind]
	c.Check(s.Name != "" && len(s.Name) <= domain.MaxNameLength && !domain.HasControl(s.Name), "body.name", s.Name, "must have 1 to 128 bytes in one line")
	c.Check(len(s.Description) <= 4096, "body.description", nil, "must not exceed 4096 bytes")
	c.Check(s.Language == "" || s.Language == LanguageEnglish || s.Language == LanguageChinese, "body.language", s.Language, "must be en or zh")
	if !known {
		kinds := make([]string, len(ChannelKinds))
		for i, k := range ChannelKinds {
			kinds[i] = string(k)
		}
		c.Check(false, "body.kind", s.Kind, "must be one of "+strings.Join(kinds, ", "))
		return c.Err()
	}
	has := func(has, set bool, at string) { c.channelHas(s.Kind, has, set, at) }
	has(traits.emails, len(s.Emails) > 0, "body.emails")
	has(traits.url, secrets.URL != "", "body.url")
	has(traits.secret, secrets.Secret != "", "body.secret")
	has(traits.token, secrets.Token != "", "body.token")
	has(traits.baseURL, s.BaseURL != "", "body.baseUrl")
	has(traits.chat, s.ChatID != "", "body.chatId")
	has(traits.chat, s.ThreadID != 0, "body.threadId")
	has(traits.mentions, len(s.Mentions) > 0, "body.mentions")
	has(traits.mentionAll, s.MentionAll, "body.mentionAll")
	c.channelReceivers(s, secrets, traits)
	c.channelTemplates(s.Kind, &s.Templates)
	return c.Err()
}

// CheckChannelTemplates is the part of CheckAlertChannel that needs no receiver.
func CheckChannelTemplates(s *AlertChannelSpec) error {
	var c checker
	c.channelTemplates(s.Kind, &s.Templates)
	return c.Err()
}

var (
	chatID   = regexp.MustCompile(`^(-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64})$`)
	botToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,128}$`)
	// mention has none of the signs that messages give a meaning.
	mention = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

func (c *checker) channelReceivers(s *AlertChannelSpec, secrets *AlertChannelSecrets, traits channelTraits) {
	if traits.emails {
		c.Check(len(s.Emails) > 0 && len(s.Emails) <= MaxChannelEmails, "body.emails", nil, "must be 1 to 16 addresses")
		for i, e := range s.Emails {
			c.Check(domain.IsEmail(e), "body.emails["+strconv.Itoa(i)+"]", e, domain.NotAnEmail)
			c.Check(!slices.ContainsFunc(s.Emails[:i], func(o string) bool { return strings.EqualFold(o, e) }), "body.emails["+strconv.Itoa(i)+"]", e, "is there twice")
		}
	}
	if traits.url {
		c.Check(secrets.URL != "", "body.url", nil, "is needed: where messages are posted")
		c.HTTPURL("body.url", secrets.URL)
		query := url.Values{}
		if u, err := url.Parse(secrets.URL); err == nil {
			query = u.Query()
		}
		c.Check(s.Kind != ChannelDingTalk || query.Get("access_token") != "", "body.url", nil, "must be the robot's whole address, with access_token")
		c.Check(s.Kind != ChannelWeCom || query.Get("key") != "", "body.url", nil, "must be the robot's whole address, with key")
	}
	c.HTTPURL("body.baseUrl", s.BaseURL)
	c.Check(!strings.ContainsAny(s.BaseURL, "?#"), "body.baseUrl", nil, "must have neither query nor fragment")
	c.Check(!traits.tokenNeeded || secrets.Token != "", "body.token", nil, "is needed: "+map[ChannelKind]string{
		ChannelTelegram: "the bot's token", ChannelPagerDuty: "the integration's routing key", ChannelOpsgenie: "the integration's API key",
	}[s.Kind])
	c.Check(s.Kind != ChannelTelegram || secrets.Token == "" || botToken.MatchString(secrets.Token), "body.token", nil, "must be a bot's token such as 123456:ABC-def")
	for at, secret := range map[string]string{"body.token": secrets.Token, "body.secret": secrets.Secret} {
		c.Check(len(secret) <= maxChannelSecret && !domain.HasControl(secret), at, nil, "must have at most 1024 bytes in one line")
	}
	c.Check(!traits.chat || chatID.MatchString(s.ChatID), "body.chatId", s.ChatID, "must be a chat's number, or the @name of a public one")
	c.Check(s.ThreadID >= 0, "body.threadId", s.ThreadID, "must not be negative")
	c.Check(len(s.Mentions) <= MaxMentions, "body.mentions", nil, "must not be more than 20")
	for i, m := range s.Mentions {
		c.Check(len(m) <= maxChannelMention && mention.MatchString(m), "body.mentions["+strconv.Itoa(i)+"]", m, "must be an id of the product: letters, digits, dots, dashes, underscores")
	}
}

var contentType = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?$`)

func (c *checker) channelHas(kind ChannelKind, has, set bool, at string) {
	c.Check(has || !set, at, nil, "is not for channels of the kind "+string(kind))
}

func (c *checker) channelTemplates(kind ChannelKind, t *ChannelTemplates) {
	traits := traitsOfChannels[kind]
	c.channelHas(kind, traits.text, t.Title != "", "body.templates.title")
	c.channelHas(kind, traits.text, t.Text != "", "body.templates.text")
	c.channelHas(kind, traits.html, t.HTML != "", "body.templates.html")
	c.channelHas(kind, traits.body, t.Body != "", "body.templates.body")
	c.channelHas(kind, traits.body, t.ContentType != "", "body.templates.contentType")
	c.Check(len(t.Title) <= MaxTitleTemplate && !strings.ContainsAny(t.Title, "\r\n"), "body.templates.title", nil, "must have at most 1024 bytes in one line")
	for at, text := range map[string]string{"text": t.Text, "html": t.HTML, "body": t.Body} {
		c.Check(len(text) <= MaxTextTemplate, "body.templates."+at, nil, "must not exceed 16384 bytes")
	}
	c.Check(t.ContentType == "" || t.Body != "", "body.templates.contentType", t.ContentType, "goes with a body")
	c.Check(t.ContentType == "" || len(t.ContentType) <= 100 && contentType.MatchString(t.ContentType), "body.templates.contentType", t.ContentType, "must be a type such as text/plain; charset=utf-8")
}
