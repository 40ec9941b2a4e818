package executor

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/proto"
)

// JobLabel gives the job a label, by which lists group and find it. Labels of other
// keys are the console's. Keys have 1 to 63 bytes without colon, equals sign, space
// or control character, values at most 128 bytes; a job has at most 32.
//
// Labels of instances, which decide where a job runs, are Config.Labels.
func JobLabel(key, value string) JobOption {
	return jobOption(func(j *job) {
		if j.labels == nil {
			j.labels = map[string]string{}
		}
		j.labels[key] = value
	})
}

// AlertOnFailure says whether the Owner and the other addresses are told when a run
// failed for good, timed out, was lost or never started. Default: the console's
// choice, which begins with true. It is for people; OnFailure is for code.
func AlertOnFailure(tell bool) JobOption {
	return jobOption(func(j *job) { j.alerts().OnFailure = &tell })
}

// AlertNoExecutor says whether they are told when a run is due and no instance is
// online. Default: the console's choice, which begins with true.
func AlertNoExecutor(tell bool) JobOption {
	return jobOption(func(j *job) { j.alerts().IncludeNoExecutor = &tell })
}

// AlertEmails are addresses beside the Owner's that are told, from 1 to 20. Default:
// the console's choice, which begins with none.
func AlertEmails(addresses ...string) JobOption {
	return jobOption(func(j *job) {
		j.alerts().Emails = append([]string(nil), addresses...)
		j.hasEmails = true
	})
}

// AlertWebhook is where alerts are posted to as well, http or https without a user
// name. The key that signs the posts is a secret and stays in the console. Default:
// the console's choice, which begins with none.
func AlertWebhook(address string) JobOption {
	return jobOption(func(j *job) { j.alerts().WebhookUrl = address; j.hasWebhook = true })
}

// alerts is what the options above fill in.
func (j *job) alerts() *proto.AlertDeclaration {
	if j.alert == nil {
		j.alert = &proto.AlertDeclaration{}
	}
	return j.alert
}

func (j *job) checkLabels() error {
	if len(j.labels) > proto.MaxLabels {
		return fmt.Errorf("%d times JobLabel: at most %d", len(j.labels), proto.MaxLabels)
	}
	for key, value := range j.labels {
		switch {
		case key == "" || len(key) > proto.MaxLabelKey || strings.ContainsAny(key, ":= \t") || hasControl(key):
			return fmt.Errorf("JobLabel(%q): keys have 1 to %d bytes without colon, equals sign, space or control character", key, proto.MaxLabelKey)
		case len(value) > proto.MaxName || hasControl(value):
			return fmt.Errorf("JobLabel(%q): values have at most %d bytes and no control characters", key, proto.MaxName)
		}
	}
	return nil
}

func (j *job) checkAlert() error {
	if j.hasEmails && (len(j.alert.Emails) == 0 || len(j.alert.Emails) > proto.MaxEmails) {
		return fmt.Errorf("AlertEmails: must be from 1 to %d addresses", proto.MaxEmails)
	}
	for _, text := range j.alert.GetEmails() {
		if a, err := mail.ParseAddress(text); err != nil || a.Name != "" || a.Address != text || len(text) > proto.MaxEmail {
			return fmt.Errorf("AlertEmails: %q is no mail address such as ops@example.com", text)
		}
	}
	if !j.hasWebhook {
		return nil
	}
	text := j.alert.WebhookUrl
	switch u, err := url.Parse(text); {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || hasControl(text) || strings.TrimSpace(text) != text:
		return errors.New("AlertWebhook must be an http or https address") // which may have a secret in it
	case u.User != nil:
		return errors.New("AlertWebhook must not contain a user name or password")
	case len(text) > proto.MaxWebhook:
		return fmt.Errorf("AlertWebhook must have at most %d bytes", proto.MaxWebhook)
	}
	return nil
}

// hasControl also finds what is no UTF-8, which no frame takes.
func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)
}
