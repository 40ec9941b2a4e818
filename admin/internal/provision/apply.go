package provision

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Accounts is what this room asks of the store.
type Accounts interface {
	FindUserByName(ctx context.Context, username string) (domain.User, error)
	Provision(ctx context.Context, p store.ProvisionParams) ([]store.ProvisionStep, error)
}

// Apply makes what is declared and missing. A password is hashed only for an
// account that is not there.
func (d *Declaration) Apply(ctx context.Context, accounts Accounts, hash func(ctx context.Context, password string) (string, error)) ([]store.ProvisionStep, error) {
	p := d.params
	p.Users = nil
	for i, u := range d.params.Users {
		_, err := accounts.FindUserByName(ctx, u.User.Username)
		if err == nil {
			continue
		}
		if !domain.Is(err, domain.CodeNotFound) {
			return nil, fmt.Errorf("find user: %w", err)
		}
		if u.User.PasswordHash, err = hash(ctx, d.passwords[i]); err != nil {
			return nil, fmt.Errorf("hash password: %w", err)
		}
		p.Users = append(p.Users, u)
	}
	return accounts.Provision(ctx, p)
}
