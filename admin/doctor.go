package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/internal/egress"
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
	e := &examination{Diagnosing: o}
	if e.ConfigErr == nil {
		e.Config, e.ConfigErr = e.Config.withDefaults()
	}
	report := doctor.Run(ctx, e.checks())
	if e.store != nil {
		_ = e.store.Close() // it has only read
	}
	return report
}

// examination is one run of the doctor. Fields that a check sets are for those
// that need it.
type examination struct {
	Diagnosing

	store  *gormstore.Store // set by "database"; nil: there is no database yet
	schema gormstore.Schema // set by "database.migrations"
}

// checks are all of them, in the order of the report.
func (e *examination) checks() []doctor.Check {
	list := []doctor.Check{
		{ID: "config", Look: e.lookAtConfig},
		{ID: "provision", Look: one(e.lookAtProvision)},
		{ID: "data", Look: e.lookAtData},
		{ID: "disk", Look: one(func(context.Context) doctor.Result { return doctor.Space(e.Config.DataDir) })},
		{ID: "files", Look: one(e.lookAtFiles)},
		{ID: "port.http", Look: one(func(ctx context.Context) doctor.Result {
			return doctor.Port(ctx, e.Config.HTTPAddress, e.whoHasHTTP)
		})},
		{ID: "port.executors", Look: one(func(ctx context.Context) doctor.Result {
			return doctor.Port(ctx, e.Config.ExecutorAddress, e.whoHas(e.Config.ExecutorAddress))
		})},
		{ID: "port.metrics", Look: one(e.lookAtMetricsPort)},
		{ID: "advertise", Look: one(e.lookAtAdvertised)},
		{ID: "certificate.http", Look: e.lookAtHTTPCertificate},
		{ID: "certificate.executors", Look: e.lookAtExecutorCertificate},
	}
	list = append(list, e.databaseChecks()...)
	list = append(list,
		doctor.Check{ID: "mail", Look: one(e.lookAtMail)},
		doctor.Check{ID: "webhook", Look: one(e.lookAtWebhook)},
		doctor.Check{ID: "hot-store", Look: one(e.lookAtHotStore)},
	)
	for i := range list[1:] {
		list[1+i].Needs = append([]string{"config"}, list[1+i].Needs...)
	}
	return list
}

// one is for checks that find one thing.
func one(look func(context.Context) doctor.Result) func(context.Context) []doctor.Result {
	return func(ctx context.Context) []doctor.Result { return []doctor.Result{look(ctx)} }
}

func (e *examination) lookAtConfig(context.Context) []doctor.Result {
	err := e.ConfigErr
	if err == nil {
		_, _, err = e.Config.database()
	}
	if err == nil {
		_, err = alerting.ParseLanguage(e.Config.Mail.Language)
	}
	if err == nil && e.Config.Mail.Host != "" {
		_, err = e.Config.Mail.sender(alerting.English, e.Config.Operators, nil)
	}
	if err != nil {
		return []doctor.Result{doctor.Fail("config_refused", "See where each setting comes from: carillon config explain", "%v", err)}
	}
	return []doctor.Result{doctor.Passed("a node takes it")}
}

func (e *examination) lookAtProvision(context.Context) doctor.Result {
	if e.Config.ProvisionFile == "" {
		return doctor.Skip("there is no file (--provision)")
	}
	summary, err := CheckProvision(e.Config.ProvisionFile)
	if err != nil {
		return doctor.Fail("provision_refused", "Correct the file, or what it names; carillon provision check tells what is wrong with it.", "%v", err)
	}
	return doctor.Passed("it declares %s", summary)
}

func (e *examination) lookAtData(context.Context) []doctor.Result {
	return doctor.Folder(e.Config.DataDir, auth.SigningKeyFile)
}

// lookAtFiles adds some for the database, logs and whatever else is open.
func (e *examination) lookAtFiles(context.Context) doctor.Result {
	const others = 200
	http, executors := e.Config.HTTPLimits.Connections, e.Config.ExecutorLimits.Sessions
	if http == 0 {
		http = httpconn.DefaultMax
	}
	if executors == 0 {
		executors = gateway.DefaultSessions
	}
	return doctor.OpenFiles(uint64(http + executors + others))
}

// whoHasHTTP asks whoever listens on the HTTP port.
func (e *examination) whoHasHTTP(ctx context.Context) doctor.Result {
	if e.Ask == nil {
		return doctor.Warn("port_in_use", "If that is no Carillon node, end it or choose another port.", "somebody listens on %s", e.Config.HTTPAddress)
	}
	if err := e.Ask(ctx); err != nil {
		return doctor.Fail("port_in_use", "If that is this node, its log has the reason; if it is another program, end it or choose another port with --http.",
			"somebody listens on %s: %v", e.Config.HTTPAddress, err)
	}
	return doctor.Passed("a node serves on %s", e.Config.HTTPAddress)
}

// whoHas can only tell that somebody is there, unless a node serves.
func (e *examination) whoHas(address string) func(context.Context) doctor.Result {
	return func(ctx context.Context) doctor.Result {
		if e.Ask != nil && e.Ask(ctx) == nil {
			return doctor.Passed("somebody listens on %s, while a node serves on %s", address, e.Config.HTTPAddress)
		}
		return doctor.Fail("port_in_use", "End what listens there, or choose another port.", "somebody listens on %s, and no node serves on %s", address, e.Config.HTTPAddress)
	}
}

func (e *examination) lookAtMetricsPort(ctx context.Context) doctor.Result {
	if e.Config.MetricsAddress == "" {
		return doctor.Skip("/metrics is on the port of UI and API, for this machine alone (--metrics-listen)")
	}
	return doctor.Port(ctx, e.Config.MetricsAddress, e.whoHas(e.Config.MetricsAddress))
}

// lookAtAdvertised finds what no executor on another machine can dial.
func (e *examination) lookAtAdvertised(ctx context.Context) doctor.Result {
	address := e.Config.AdvertiseAddress
	if address == "" {
		address = e.Config.ExecutorAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return doctor.Fail("advertise_unusable", "Give host:port with --advertise.", "executors are told to dial %s: %v", address, err)
	}
	listens, _, _ := net.SplitHostPort(e.Config.ExecutorAddress) // withDefaults has seen it
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		return doctor.Fail("advertise_no_address", "Name the address under which executors reach this machine: --advertise HOST:PORT", "executors are told to dial %s, which is no address", address)
	case isLoopback(host) && !isLoopback(listens):
		return doctor.Warn("advertise_loopback", "Name the address under which executors reach this machine: --advertise HOST:PORT", "executors are told to dial %s, which leads other machines to themselves", address)
	case ip == nil:
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return doctor.Warn("advertise_unknown", "Enter the name in the name service, or give an address with --advertise.", "executors are told to dial %s: %v", address, err)
		}
	}
	return doctor.Passed("executors are told to dial %s", address)
}

func (e *examination) lookAtHTTPCertificate(ctx context.Context) []doctor.Result {
	if e.Config.TLSCertFile == "" {
		return []doctor.Result{doctor.Skip("UI and API are without TLS (--tls-cert)")}
	}
	return append(doctor.Certificate(e.Config.TLSCertFile, e.Config.TLSKeyFile, time.Now(), hostOf(e.Config.BaseURL)),
		doctor.Loaded(ctx, e.Config.HTTPAddress, e.Config.TLSCertFile, e.Config.TLSKeyFile)...)
}

func (e *examination) lookAtExecutorCertificate(ctx context.Context) []doctor.Result {
	if e.Config.ExecutorTLSCertFile == "" {
		return []doctor.Result{doctor.Skip("the executors' port is without TLS (--executors-tls-cert)")}
	}
	host, _, _ := net.SplitHostPort(e.Config.AdvertiseAddress) // empty when it is
	return append(doctor.Certificate(e.Config.ExecutorTLSCertFile, e.Config.ExecutorTLSKeyFile, time.Now(), host),
		doctor.Loaded(ctx, e.Config.ExecutorAddress, e.Config.ExecutorTLSCertFile, e.Config.ExecutorTLSKeyFile)...)
}

func (e *examination) lookAtMail(ctx context.Context) doctor.Result {
	switch {
	case e.Config.Mail.Host == "" && len(e.Config.Operators.Emails) > 0:
		return doctor.Warn("no_mail_server", "Name one with --mail-host.", "mails to the operators cannot be sent: no mail server is configured")
	case e.Config.Mail.Host == "":
		return doctor.Skip("no mail server is configured (--mail-host)")
	}
	sender, err := e.Config.Mail.sender(alerting.English, e.Config.Operators, nil)
	if err == nil {
		err = sender.LogIn(ctx)
	}
	if err != nil {
		return doctor.Warn("mail_unreachable", "Look at --mail-host, --mail-port, --mail-tls, the user and its password; until then alerts by mail wait and are tried again.",
			"%s: %v", e.Config.Mail.Host, plainly(ctx, err))
	}
	login := "without a login"
	if e.Config.Mail.Username != "" {
		login = "as " + e.Config.Mail.Username
	}
	return doctor.Passed("%s lets us in %s; nothing was sent", sender.Server(), login)
}

func (e *examination) lookAtWebhook(ctx context.Context) doctor.Result {
	address := e.Config.Operators.WebhookURL
	if address == "" {
		return doctor.Skip("the operators have no webhook (--operator-webhook)")
	}
	client := post.New(post.Options{AllowPrefixes: e.Config.Webhook.AllowPrefixes})
	if err := client.Reach(ctx, address); err != nil {
		return doctor.Warn("webhook_unreachable", "Look at --operator-webhook, at what lies between, and for private networks at --webhook-allow.",
			"the operators' webhook at %s: %v", hostOf(address), plainly(ctx, err))
	}
	return doctor.Passed("%s answers; nothing was posted", hostOf(address))
}

func (e *examination) lookAtHotStore(ctx context.Context) doctor.Result {
	if e.Config.HotStore == "" {
		return doctor.Skip("there is none (--hot-store)")
	}
	if err := hotset.Ping(ctx, e.Config.HotStore); err != nil {
		return doctor.Warn("hot_store_unreachable", "Look at the Redis and at --hot-store; until then the database is searched for timers.", "%v", plainly(ctx, err))
	}
	return doctor.Passed("the Redis answers")
}

// shownUnheard is how many tenants the doctor names.
const shownUnheard = 10

// lookAtReceivers names tenants without a receiver of their failures.
func (e *examination) lookAtReceivers(ctx context.Context) []doctor.Result {
	unheard, err := e.store.ListUnheardTenants(ctx, e.Config.Mail.Host != "")
	if err != nil {
		return unasked(ctx, err)
	}
	var names []string
	for n := range unheard {
		if !unheard[n].Fresh || len(e.Config.receivers()) == 0 { // the others get one at the next start
			names = append(names, unheard[n].Name)
		}
	}
	if len(names) == 0 {
		return []doctor.Result{doctor.Passed("each tenant has an alert channel for failures that name no receiver")}
	}
	shown := strings.Join(names[:min(len(names), shownUnheard)], ", ")
	if more := len(names) - shownUnheard; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return []doctor.Result{doctor.Warn("alerts_reach_nobody", "Give the server addresses with --alert-to (and --mail-host), or each tenant a default channel: carillon alert default CHANNEL-ID",
		"failures of timers and calls, and of jobs that name no receiver, reach nobody in these tenants: %s", shown)}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// plainly says what libraries say in other words.
func plainly(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF):
		return errors.New("the connection was closed")
	case errors.Is(err, fs.ErrPermission):
		return fs.ErrPermission
	}
	return egress.Detailed(err)
}
