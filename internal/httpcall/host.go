package httpcall

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Host is what may be called: "api.example.com", "*.example.com", "*", each with
// or without a port.
type Host struct{ name, port string }

// ParseHost reads a pattern.
func ParseHost(text string) (Host, error) {
	host, port := strings.ToLower(strings.TrimSpace(text)), ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	host = strings.Trim(host, "[]")
	if _, err := strconv.ParseUint(port, 10, 16); host == "" || port != "" && err != nil || strings.ContainsAny(host, "/@?#, \t\r\n") || strings.Contains(strings.TrimPrefix(host, "*"), "*") ||
		strings.HasPrefix(host, "*") && host != "*" && !strings.HasPrefix(host, "*.") {
		return Host{}, fmt.Errorf("%q is no host such as api.example.com, *.example.com, api.example.com:8443 or *", text)
	}
	return Host{host, port}, nil
}

// ParseHosts reads several.
func ParseHosts(list []string) ([]Host, error) {
	out := make([]Host, 0, len(list))
	for _, text := range list {
		h, err := ParseHost(text)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func (p Host) matches(u *url.URL) bool {
	if p.port != "" && p.port != portOf(u) {
		return false
	}
	host := nameOf(u)
	suffix, wild := strings.CutPrefix(p.name, "*")
	return host == p.name || wild && strings.HasSuffix(host, suffix)
}

func nameOf(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// Receiver names who is called, for what is counted by receiver: host and port.
func Receiver(u *url.URL) string { return net.JoinHostPort(nameOf(u), portOf(u)) }

// allowed says why an address may not be called, or nil. Which network it
// leads to shows when it is dialled.
func (c *Caller) allowed(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("url: must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("url: names no host")
	case u.User != nil:
		return errors.New("url: must not hold a user name or password; use a header")
	case !slices.ContainsFunc(c.Hosts, func(p Host) bool { return p.matches(u) }):
		return fmt.Errorf("%s may not call %s (%s)", c.Who, u.Host, c.HostsBy)
	}
	return nil
}
