package mail

import (
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"
)

// Recipients are the addresses that this server mails to. Tenants choose addresses and
// texts. Without a bound they could send any text to any address as the operator.
type Recipients struct {
	// Domains are such as example.com, .example.com (those below it), or any.
	Domains []string
	// Operators are told whatever their domain is.
	Operators []string
}

// CheckDomain tells what is wrong with an entry of Domains.
func CheckDomain(pattern string) error {
	name := strings.TrimPrefix(pattern, ".")
	if name == "" || strings.ContainsAny(name, "*@/: ,") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return fmt.Errorf("%q is no domain: use example.com, .example.com for those below it, or any", pattern)
	}
	return nil
}

// Check returns nil if the address may get mails.
func (r Recipients) Check(address string) error {
	parsed, err := netmail.ParseAddress(address)
	if err != nil {
		return fmt.Errorf("mail address: %w", err)
	}
	same := func(operator string) bool {
		known, err := netmail.ParseAddress(operator)
		return err == nil && strings.EqualFold(known.Address, parsed.Address)
	}
	domain := strings.ToLower(domainOf(parsed.Address))
	listed := func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		return pattern == "any" || pattern == domain || strings.HasPrefix(pattern, ".") && strings.HasSuffix(domain, pattern)
	}
	if slices.ContainsFunc(r.Domains, listed) || slices.ContainsFunc(r.Operators, same) {
		return nil
	}
	return fmt.Errorf("this server sends no mails to the domain %q, but to %s; its operator can list others (--mail-domains)", domain, strings.Join(r.Domains, ", "))
}
