package admin

import (
	"context"
	"crypto/tls"
	"os"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/disabled"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// openTrust reads what secrets are sealed with, and the authority of executors'
// certificates when they are used.
func (a *Admin) openTrust(ctx context.Context) (err error) {
	if a.box, err = secret.Load(os.Getenv(secret.EnvKey), a.config.SealingKeyFile); err != nil {
		return err
	}
	if err := a.box.Claim(ctx, a.store); err != nil {
		return err
	}
	if err := a.disabled.Read(ctx); err != nil {
		return err
	}
	a.denials = auth.NewDenials(a.store, func(d domain.Denial) []domain.InstanceID { return a.gateway.EndDenied(d) }, a.log)
	if a.config.ExecutorCertificates == CertificatesOff {
		return nil
	}
	a.authority, err = auth.OpenAuthority(ctx, auth.AuthorityOptions{
		Store: a.store, Sealer: a.box, ClusterID: a.clusterID, NewID: a.ids.Next, Logger: a.log,
		Required: a.config.ExecutorCertificates == CertificatesRequired,
	})
	return err
}

// executorPort is what the gateway checks connections with.
func (a *Admin) executorPort(o *gateway.Options) (err error) {
	o.Denials, o.RecycleAfter, o.IdleBeats = disabled.Door{Denials: a.denials, List: a.disabled, Store: a.store, NoFire: a.config.NoFire}, a.config.ExecutorRecycle, float64(a.config.ExecutorIdleBeats)
	o.Limits = gateway.Limits{
		Sessions: a.config.ExecutorLimits.Sessions, SessionsPerTenant: a.config.ExecutorLimits.SessionsPerTenant,
		PerAddress: a.config.ExecutorLimits.PerAddress,
	}
	if o.TLS, err = loadTLS(a.config.ExecutorTLSCertFile, a.config.ExecutorTLSKeyFile); err != nil || a.authority == nil {
		return err
	}
	// Who shows none may come for one. The gateway checks it, so that a refusal
	// can say why; TLS itself only proves that the key is there.
	o.TLS.ClientAuth = tls.RequestClientCert
	o.Certificates = a.authority
	return nil
}
