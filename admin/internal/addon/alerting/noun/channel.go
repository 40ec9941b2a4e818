package noun

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
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

// AlertChannel is a channel as alerts use it.
type AlertChannel struct {
	ID       domain.ChannelID
	TenantID domain.TenantID
	Version  int64
	Spec     AlertChannelSpec
	// Secrets are sealed AlertChannelSecrets; empty: it has none.
	Secrets []byte
}

// AlertChannelSpec is a channel without its secrets.
type AlertChannelSpec struct {
	Name        string      `json:"-"` // that of the document
	Description string      `json:"description,omitempty" maxLength:"4096" doc:"Purpose of the channel, for people"`
	Kind        ChannelKind `json:"kind" enum:"email,webhook,dingtalk,feishu,wecom,slack,teams,telegram,pagerduty,opsgenie" doc:"Means by which alerts are sent; fixed"`
	Enabled     bool        `json:"enabled" required:"false" doc:"Whether the channel is used; default true. A message through a disabled channel fails, and its delivery says so"`
	Language    string      `json:"language,omitempty" enum:"en,zh" doc:"Language of its texts; default: the server's (alert-language)"`
	Emails      []string    `json:"emails,omitempty" maxItems:"16" doc:"email: the addresses. Each gets a mail of its own"`
	// Host is scheme and host of the secret url, by which people recognize it. Check fills it in.
	Host       string           `json:"host,omitempty" maxLength:"2048" doc:"Scheme and host of its url. The server fills it in; a value that is written is ignored"`
	BaseURL    string           `json:"baseUrl,omitempty" maxLength:"2048" doc:"telegram, pagerduty, opsgenie: address of its interface, such as https://api.eu.opsgenie.com; default: the product's own"`
	ChatID     string           `json:"chatId,omitempty" maxLength:"65" doc:"telegram: number of the chat, or @name of a public one"`
	ThreadID   int64            `json:"threadId,omitempty" minimum:"0" doc:"telegram: topic of the group; default: none"`
	Mentions   []string         `json:"mentions,omitempty" maxItems:"20" doc:"People to mention: dingtalk mobile numbers, feishu open ids, wecom user ids, slack member ids"`
	MentionAll bool             `json:"mentionAll,omitempty" doc:"dingtalk, feishu, wecom, slack: mention everybody"`
	Templates  ChannelTemplates `json:"templates,omitzero" doc:"Texts instead of the server's own; default: none"`
}

// UnmarshalJSON reads a spec. A channel is enabled by default.
func (s *AlertChannelSpec) UnmarshalJSON(text []byte) error {
	type plain AlertChannelSpec
	read := plain{Enabled: true}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = AlertChannelSpec(read)
	return nil
}

// AlertChannelOf is the channel of a document.
func AlertChannelOf(row *resource.Row) (AlertChannel, error) {
	d, err := resource.Read[AlertChannelSpec](row)
	d.Spec.Name = row.Name
	return AlertChannel{ID: domain.ChannelID(row.ID), TenantID: row.Tenant, Version: row.Version, Spec: d.Spec, Secrets: row.Sealed}, err
}

// ChannelTemplates are texts in the language of Go's templates. They replace those of the
// server; empty: they do not.
type ChannelTemplates struct {
	Title       string `json:"title,omitempty" maxLength:"1024" doc:"Title of messages, subject of mails"`
	Text        string `json:"text,omitempty" maxLength:"16384" doc:"Text of messages, plain part of mails"`
	HTML        string `json:"html,omitempty" maxLength:"16384" doc:"email: the HTML part"`
	Body        string `json:"body,omitempty" maxLength:"16384" doc:"webhook: the request's body; {{json .Title}} makes a JSON text of a field"`
	ContentType string `json:"contentType,omitempty" maxLength:"100" doc:"webhook: type of the body; default JSON, which is checked"`
}

// Secrets of channels by name.
const (
	SecretURL    = "url"
	SecretSecret = "secret"
	SecretToken  = "token"
)

// AlertChannelSecrets are kept sealed.
type AlertChannelSecrets struct {
	// URL is where messages are posted. Most of them have a key.
	URL string `json:"url,omitempty"`
	// Secret signs: webhooks, DingTalk, Feishu. It is not sent.
	Secret string `json:"secret,omitempty"`
	// Token says who sends: Telegram's bot, PagerDuty's routing key, Opsgenie's
	// API key, a webhook's bearer token.
	Token string `json:"token,omitempty"`
}

// Host is scheme and host of the URL.
func (s *AlertChannelSecrets) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil || s.URL == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Complete removes spaces.
func (s *AlertChannelSpec) Complete() {
	s.Description, s.BaseURL = strings.TrimSpace(s.Description), strings.TrimRight(s.BaseURL, "/")
}

// SameReceiver tells whether the channel leads where another one does, as far as its spec says.
func (s *AlertChannelSpec) SameReceiver(old *AlertChannelSpec) bool { return s.BaseURL == old.BaseURL }

// CheckChannel adds the wrong fields of a channel that is about to be written, and fills in its
// host.
func CheckChannel(d *resource.Draft[AlertChannelSpec], c *domain.Checker) {
	secrets := AlertChannelSecrets{URL: d.Secrets[SecretURL], Secret: d.Secrets[SecretSecret], Token: d.Secrets[SecretToken]}
	c.Check(d.Old == nil || d.Spec.Kind == d.Old.Spec.Kind, "body.spec.kind", d.Spec.Kind, "is fixed: make another channel")
	d.Spec.Host = secrets.Host()
	CheckAlertChannel(&d.Spec, &secrets, c)
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

// CheckAlertChannel adds the wrong fields of a channel. Whether its address may be reached shows
// when it is dialled. The service checks templates with samples.
func CheckAlertChannel(s *AlertChannelSpec, secrets *AlertChannelSecrets, into *domain.Checker) {
	c := checker{*into}
	defer func() { *into = c.Checker }()
	traits, known := traitsOfChannels[s.Kind]
	c.Check(len(s.Description) <= 4096, "body.spec.description", nil, "must not exceed 4096 bytes")
	c.Check(s.Language == "" || s.Language == LanguageEnglish || s.Language == LanguageChinese, "body.spec.language", s.Language, "must be en or zh")
	if !known {
		c.Check(false, "body.spec.kind", s.Kind, "must be one of "+strings.Join(domain.Collect(ChannelKinds, func(k *ChannelKind) string { return string(*k) }), ", "))
		return
	}
	has := func(has, set bool, at string) { c.channelHas(s.Kind, has, set, at) }
	has(traits.emails, len(s.Emails) > 0, "body.spec.emails")
	has(traits.url, secrets.URL != "", "body.secrets.url")
	has(traits.secret, secrets.Secret != "", "body.secrets.secret")
	has(traits.token, secrets.Token != "", "body.secrets.token")
	has(traits.baseURL, s.BaseURL != "", "body.spec.baseUrl")
	has(traits.chat, s.ChatID != "", "body.spec.chatId")
	has(traits.chat, s.ThreadID != 0, "body.spec.threadId")
	has(traits.mentions, len(s.Mentions) > 0, "body.spec.mentions")
	has(traits.mentionAll, s.MentionAll, "body.spec.mentionAll")
	c.channelReceivers(s, secrets, traits)
	c.channelTemplates(s.Kind, &s.Templates)
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
		c.Check(len(s.Emails) > 0 && len(s.Emails) <= MaxChannelEmails, "body.spec.emails", nil, "must be 1 to 16 addresses")
		for i, e := range s.Emails {
			c.Check(domain.IsEmail(e), "body.spec.emails["+strconv.Itoa(i)+"]", e, domain.NotAnEmail)
			c.Check(!slices.ContainsFunc(s.Emails[:i], func(o string) bool { return strings.EqualFold(o, e) }), "body.spec.emails["+strconv.Itoa(i)+"]", e, "is there twice")
		}
	}
	if traits.url {
		c.Check(secrets.URL != "", "body.secrets.url", nil, "is needed: where messages are posted")
		c.HTTPURL("body.secrets.url", secrets.URL)
		query := url.Values{}
		if u, err := url.Parse(secrets.URL); err == nil {
			query = u.Query()
		}
		c.Check(s.Kind != ChannelDingTalk || query.Get("access_token") != "", "body.secrets.url", nil, "must be the robot's whole address, with access_token")
		c.Check(s.Kind != ChannelWeCom || query.Get("key") != "", "body.secrets.url", nil, "must be the robot's whole address, with key")
	}
	c.HTTPURL("body.spec.baseUrl", s.BaseURL)
	c.Check(!strings.ContainsAny(s.BaseURL, "?#"), "body.spec.baseUrl", nil, "must have neither query nor fragment")
	c.Check(!traits.tokenNeeded || secrets.Token != "", "body.secrets.token", nil, "is needed: "+map[ChannelKind]string{
		ChannelTelegram: "the bot's token", ChannelPagerDuty: "the integration's routing key", ChannelOpsgenie: "the integration's API key",
	}[s.Kind])
	c.Check(s.Kind != ChannelTelegram || secrets.Token == "" || botToken.MatchString(secrets.Token), "body.secrets.token", nil, "must be a bot's token such as 123456:ABC-def")
	for at, secret := range map[string]string{"body.secrets.token": secrets.Token, "body.secrets.secret": secrets.Secret} {
		c.Check(len(secret) <= maxChannelSecret && !domain.HasControl(secret), at, nil, "must have at most 1024 bytes in one line")
	}
	c.Check(!traits.chat || chatID.MatchString(s.ChatID), "body.spec.chatId", s.ChatID, "must be a chat's number, or the @name of a public one")
	c.Check(s.ThreadID >= 0, "body.spec.threadId", s.ThreadID, "must not be negative")
	c.Check(len(s.Mentions) <= MaxMentions, "body.spec.mentions", nil, "must not be more than 20")
	for i, m := range s.Mentions {
		c.Check(len(m) <= maxChannelMention && mention.MatchString(m), "body.spec.mentions["+strconv.Itoa(i)+"]", m, "must be an id of the product: letters, digits, dots, dashes, underscores")
	}
}

var contentType = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?$`)

func (c *checker) channelHas(kind ChannelKind, has, set bool, at string) {
	c.Check(has || !set, at, nil, "is not for channels of the kind "+string(kind))
}

func (c *checker) channelTemplates(kind ChannelKind, t *ChannelTemplates) {
	traits := traitsOfChannels[kind]
	c.channelHas(kind, traits.text, t.Title != "", "body.spec.templates.title")
	c.channelHas(kind, traits.text, t.Text != "", "body.spec.templates.text")
	c.channelHas(kind, traits.html, t.HTML != "", "body.spec.templates.html")
	c.channelHas(kind, traits.body, t.Body != "", "body.spec.templates.body")
	c.channelHas(kind, traits.body, t.ContentType != "", "body.spec.templates.contentType")
	c.Check(len(t.Title) <= MaxTitleTemplate && !strings.ContainsAny(t.Title, "\r\n"), "body.spec.templates.title", nil, "must have at most 1024 bytes in one line")
	for at, text := range map[string]string{"text": t.Text, "html": t.HTML, "body": t.Body} {
		c.Check(len(text) <= MaxTextTemplate, "body.spec.templates."+at, nil, "must not exceed 16384 bytes")
	}
	c.Check(t.ContentType == "" || t.Body != "", "body.spec.templates.contentType", t.ContentType, "goes with a body")
	c.Check(t.ContentType == "" || len(t.ContentType) <= 100 && contentType.MatchString(t.ContentType), "body.spec.templates.contentType", t.ContentType, "must be a type such as text/plain; charset=utf-8")
}
