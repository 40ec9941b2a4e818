package provision

import (
	"errors"
	"fmt"
	"net/mail"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Receiver has the default addresses for failures of a tenant.
type Receiver struct {
	Tenant string
	Emails []string
	// Line and Where are its place in the file.
	Line  int
	Where string
}

// Addresses are those of a list that people wrote, at most as many as a channel may have. A
// text that is no address is left out.
func Addresses(list []string) (out []string) {
	for _, text := range list[:min(len(list), domain.MaxChannelEmails)] {
		if address, err := mail.ParseAddress(text); err == nil {
			out = append(out, address.Address)
		}
	}
	return out
}

// CheckAddresses holds addresses against what the server sends; a nil check: it has no server
// for mails.
func CheckAddresses(addresses []string, check func(address string) error) error {
	switch {
	case len(addresses) == 0:
		return nil
	case len(addresses) > domain.MaxChannelEmails:
		return fmt.Errorf("%d addresses are too many: use at most %d, such as that of a list", len(addresses), domain.MaxChannelEmails)
	case check == nil:
		return errors.New("alerts to addresses need a mail server: name one with --mail-host")
	}
	for _, address := range addresses {
		if err := check(address); err != nil {
			return fmt.Errorf("%q: %w", address, err)
		}
	}
	return nil
}
