package noun

import (
	"context"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// AlertChannelKind is the kind of documents that are alert channels.
var AlertChannelKind = resource.Of(resource.Kind{
	Name: "AlertChannel", Noun: "alert channel", Path: "alert-channels", Most: MaxAlertChannels, Computes: true,
	About: "An alert channel is a means by which a tenant gets alerts.", Read: domain.PermRead, Edit: domain.PermEdit,
	Purpose: secret.PurposeAlertChannel,
	Secrets: []resource.SecretField{
		{Name: SecretURL, Address: true, About: "webhook, dingtalk, feishu, wecom, slack, teams: where messages are posted. Private networks only as the operator allows (webhook-allow)"},
		{Name: SecretSecret, About: "webhook, dingtalk, feishu: signs messages"},
		{Name: SecretToken, About: "telegram: token of the bot. pagerduty: routing key. opsgenie: API key. webhook: bearer token"},
	},
	Notes: resource.Notes{
		Create: "test-alert-channel tries it. Templates are checked with samples of all alerts. A tenant may have 64.",
		Update: "Secrets that are left out stay, unless they would be sent to another receiver.",
		Delete: "Refused while alert rules name it. Messages that wait for it fail.",
	},
}, resource.Rules[AlertChannelSpec]{
	Complete: (*AlertChannelSpec).Complete,
	Check: func(_ context.Context, d *resource.Draft[AlertChannelSpec], c *domain.Checker) error {
		CheckChannel(d, c)
		return nil
	},
	SameReceiver: (*AlertChannelSpec).SameReceiver,
	Older:        olderChannel,
})

// olderChannel reads a row of before the mechanism of documents, as migration 14 left it.
func olderChannel(text []byte) (spec AlertChannelSpec, marks map[string]string, err error) {
	var was struct {
		Kind     ChannelKind     `json:"kind"`
		Enabled  int             `json:"enabled"`
		Settings json.RawMessage `json:"settings"`
	}
	var has struct {
		HasSecret bool `json:"hasSecret"`
		HasToken  bool `json:"hasToken"`
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return spec, nil, err
	}
	if err := json.Unmarshal(was.Settings, &spec); err != nil {
		return spec, nil, err
	}
	if err := json.Unmarshal(was.Settings, &has); err != nil {
		return spec, nil, err
	}
	spec.Kind, spec.Enabled = was.Kind, was.Enabled != 0
	return spec, resource.OlderMarks(map[string]bool{SecretURL: spec.Host != "", SecretSecret: has.HasSecret, SecretToken: has.HasToken}), nil
}
