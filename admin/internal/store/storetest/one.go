package storetest

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// RegisterInstance is RegisterInstances of one.
func RegisterInstance(ctx context.Context, f store.Instances, p store.RegisterInstanceParams) (domain.Instance, error) {
	out, err := f.RegisterInstances(ctx, []store.RegisterInstanceParams{p})
	if err != nil {
		return domain.Instance{}, err
	}
	return out[0].Instance, out[0].Err
}

// LeaveInstance is LeaveInstances of one.
func LeaveInstance(ctx context.Context, f store.Instances, tenant domain.TenantID, id domain.InstanceID, reason string) error {
	return f.LeaveInstances(ctx, []store.InstanceLeave{{Tenant: tenant, ID: id, Reason: reason}})[0]
}

// SettleInventory is SettleInventories of one.
func SettleInventory(ctx context.Context, s interface {
	SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []store.SettledInventory
}, p store.SettleInventoryParams) ([]store.SettledItem, error) {
	out := s.SettleInventories(ctx, []store.SettleInventoryParams{p})[0]
	return out.Items, out.Err
}
