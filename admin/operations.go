package admin

import (
	"cmp"
	"context"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/doctor/check"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
)

// Diagnosis is what Diagnose found.
type (
	Diagnosis     = doctor.Report
	DiagnosisLine = doctor.Result
)

// Verdicts of the lines of a Diagnosis.
const (
	DiagnosisOK      = doctor.OK
	DiagnosisWarning = doctor.Warning
	DiagnosisFailed  = doctor.Failed
	DiagnosisSkipped = doctor.Skipped
)

// Diagnosing says what to look at.
type Diagnosing struct {
	Config Config
	// ConfigErr is why there is no Config; then little else can be looked at.
	ConfigErr error
	// Ask asks the node that has this machine's HTTP port already whether it serves.
	Ask func(context.Context) error
}

// Diagnose looks whether a node with this configuration works on this machine,
// without starting one. It writes nothing, and returns within 5 s.
func Diagnose(ctx context.Context, o Diagnosing) *Diagnosis {
	s := check.Settings{Refused: o.ConfigErr}
	if o.ConfigErr == nil {
		s = o.Config.toCheck()
	}
	s.Ask = o.Ask
	return check.Run(ctx, s)
}

// otherFiles are open besides connections: the database, logs and so on.
const otherFiles = 200

// toCheck returns the settings that the doctor looks at.
func (c Config) toCheck() check.Settings {
	c, err := c.withDefaults()
	s := check.Settings{
		DataDir: c.DataDir, SigningKeyFile: auth.SigningKeyFile, SealingKeyFile: c.SealingKeyFile,
		HTTPAddress: c.HTTPAddress, ExecutorAddress: c.ExecutorAddress, AdvertiseAddress: c.AdvertiseAddress, MetricsAddress: c.MetricsAddress,
		BaseURL: c.BaseURL, TLSCertFile: c.TLSCertFile, TLSKeyFile: c.TLSKeyFile, ExecutorTLSCertFile: c.ExecutorTLSCertFile, ExecutorTLSKeyFile: c.ExecutorTLSKeyFile,
		Files:   uint64(cmp.Or(c.HTTPLimits.Connections, httpconn.DefaultMax) + cmp.Or(c.ExecutorLimits.Sessions, gateway.DefaultSessions) + otherFiles),
		Refuses: c.refuses, MailUser: c.Mail.Username, OperatorMails: len(c.Operators.Emails) > 0, OperatorWebhook: c.Operators.WebhookURL,
		WebhookNetworks: c.Webhook.AllowPrefixes, BrokerNetworks: c.Connections.AllowPrefixes, HotStore: c.HotStore, Receivers: len(c.receivers()) > 0,
	}
	if c.ProvisionFile != "" {
		s.Provision = func() (string, error) { return CheckProvision(c.ProvisionFile) }
	}
	if err == nil {
		s.Database, err = c.storeOptions()
	}
	if err == nil {
		_, err = alerting.ParseLanguage(c.Mail.Language)
	}
	if err == nil && c.Mail.Host != "" {
		s.Mail, err = c.Mail.sender(alerting.English, c.Operators, nil)
	}
	s.Refused = err
	return s
}
