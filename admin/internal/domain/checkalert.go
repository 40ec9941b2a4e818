package domain

import (
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// HasControl finds control characters, those that turn the reading direction, and
// what is no UTF-8.
func HasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r)
	})
}

// IsEmail reports whether the text is one mail address and nothing else.
func IsEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && a.Name == "" && len(text) <= MaxEmailLength && !HasControl(text)
}

// CheckLabelsAndAlert is the part of CheckSpec that needs nothing else to be right.
func CheckLabelsAndAlert(s *JobSpec) error {
	var c checker
	c.labels(s.Labels)
	c.alert(&s.Alert)
	return c.err()
}

func (c *checker) labels(labels map[string]string) {
	c.check(len(labels) <= MaxLabels, "body.labels", nil, "must not be more than 32")
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := labels[key]
		if key == "" || len(key) > MaxLabelKey || strings.ContainsAny(key, ":= \t") || HasControl(key) {
			c.fail("body.labels", key, "keys have 1 to 63 bytes and no colon, equals sign, space or control character")
			continue
		}
		c.check(len(value) <= MaxNameLength && !HasControl(value), "body.labels."+key, nil, "values have at most 128 bytes and no control characters")
	}
}

func (c *checker) alert(a *Alert) {
	c.check(len(a.Emails) <= MaxEmails, "body.alert.emails", nil, "must not be more than 20")
	for _, e := range a.Emails {
		c.check(IsEmail(e), "body.alert.emails", e, NotAnEmail)
	}
	if a.WebhookURL == "" {
		return
	}
	// The address may have a secret in it: it is not repeated.
	const at = "body.alert.webhookUrl"
	u, err := url.Parse(a.WebhookURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		c.fail(at, nil, "is not an http or https address")
	case u.User != nil:
		c.fail(at, nil, "must not contain a user name or password")
	case HasControl(a.WebhookURL):
		c.fail(at, nil, "must not contain control characters")
	}
	c.check(len(a.WebhookURL) <= MaxWebhookLength, at, nil, "must not exceed 2048 bytes")
}

// NotAnEmail is what is wrong with a text that IsEmail does not take.
const NotAnEmail = "is not a mail address such as ops@example.com"
