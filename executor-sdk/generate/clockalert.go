package generate

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/carillon-sched/carillon/proto"
)

// Label is a label of a job.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Alert is what a marker says of alerts; what is nil or empty is the console's.
type Alert struct {
	OnFailure  string   `json:"onFailure,omitempty"`  // true or false
	NoExecutor string   `json:"noExecutor,omitempty"` // true or false
	Emails     []string `json:"emails,omitempty"`
	Webhook    string   `json:"webhook,omitempty"`
}

var yesNo = []string{"true", "false"}

// setAlert sets labels and alerts.
func (c *clockReader) setAlert(o option) {
	if c.clock.Alert == nil && strings.HasPrefix(o.key, "alert-") {
		c.clock.Alert = &Alert{}
	}
	switch o.key {
	case "labels":
		c.clock.Labels = c.labels(o)
	case "alert-on-failure":
		c.clock.Alert.OnFailure = c.word(o, yesNo)
	case "alert-no-executor":
		c.clock.Alert.NoExecutor = c.word(o, yesNo)
	case "alert-emails":
		c.clock.Alert.Emails = c.addresses(o)
	case "alert-webhook":
		c.clock.Alert.Webhook = c.webhook(o)
	}
}

// labels reads labels="team=books, env=prod".
func (c *clockReader) labels(o option) []Label {
	var out []Label
	for _, text := range strings.Split(o.value, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		l := Label{key, value}
		switch {
		case !ok || key == "" || len(key) > proto.MaxLabelKey || strings.ContainsAny(key, ": \t") || hasControl(key):
			c.r.add(o.valuePos, fmt.Sprintf("write labels=\"team=books, env=prod\"; keys have 1 to %d bytes without colon and space", proto.MaxLabelKey),
				"labels=%q: %q is no label", o.value, text)
			return nil
		case len(value) > proto.MaxName || hasControl(value):
			c.r.add(o.valuePos, fmt.Sprintf("use at most %d bytes without control characters", proto.MaxName), "labels: the value of %q is not allowed", key)
			return nil
		case slices.ContainsFunc(out, func(other Label) bool { return other.Key == key }):
			c.r.add(o.valuePos, "keep one of them", "labels: the key %q is given twice", key)
			return nil
		}
		out = append(out, l)
	}
	if len(out) > proto.MaxLabels {
		c.r.add(o.valuePos, fmt.Sprintf("write at most %d", proto.MaxLabels), "labels has %d of them", len(out))
	}
	slices.SortFunc(out, func(a, b Label) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// addresses reads alert-emails=a@example.com,b@example.com.
func (c *clockReader) addresses(o option) []string {
	var out []string
	for _, text := range strings.Split(o.value, ",") {
		if text = c.address(o, strings.TrimSpace(text)); text == "" {
			return nil
		}
		out = append(out, text)
	}
	if len(out) > proto.MaxEmails {
		c.r.add(o.valuePos, fmt.Sprintf("write at most %d", proto.MaxEmails), "%s has %d addresses", o.key, len(out))
	}
	return out
}

func (c *clockReader) webhook(o option) string {
	u, err := url.Parse(o.value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(o.value) > proto.MaxWebhook || hasControl(o.value) ||
		strings.TrimSpace(o.value) != o.value {
		c.r.add(o.valuePos, fmt.Sprintf("write an http or https address without a user name, of at most %d bytes", proto.MaxWebhook),
			"%s=%q is not allowed", o.key, o.value)
		return ""
	}
	return o.value
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
