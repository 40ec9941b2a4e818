package check

import (
	"context"
	"net"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/internal/egress"
)

// whoHasHTTP asks the process that listens on the HTTP port.
func (e *examination) whoHasHTTP(ctx context.Context) doctor.Result {
	if e.Ask == nil {
		return doctor.Warn("port_in_use", "If that is no Carillon node, end it or choose another port.", "somebody listens on %s", e.HTTPAddress)
	}
	if err := e.Ask(ctx); err != nil {
		return doctor.Fail("port_in_use", "If that is this node, its log has the reason; if it is another program, end it or choose another port with --http.",
			"somebody listens on %s: %v", e.HTTPAddress, err)
	}
	return doctor.Passed("a node serves on %s", e.HTTPAddress)
}

// whoHas can only tell that a process listens, unless a node serves.
func (e *examination) whoHas(address string) func(context.Context) doctor.Result {
	return func(ctx context.Context) doctor.Result {
		if e.Ask != nil && e.Ask(ctx) == nil {
			return doctor.Passed("somebody listens on %s, while a node serves on %s", address, e.HTTPAddress)
		}
		return doctor.Fail("port_in_use", "End what listens there, or choose another port.", "somebody listens on %s, and no node serves on %s", address, e.HTTPAddress)
	}
}

func (e *examination) lookAtMetricsPort(ctx context.Context) doctor.Result {
	if e.MetricsAddress == "" {
		return doctor.Skip("/metrics is on the port of UI and API, for this machine alone (--metrics-listen)")
	}
	return doctor.Port(ctx, e.MetricsAddress, e.whoHas(e.MetricsAddress))
}

// lookAtAdvertised finds what no executor on another machine can dial.
func (e *examination) lookAtAdvertised(ctx context.Context) doctor.Result {
	address := e.AdvertiseAddress
	if address == "" {
		address = e.ExecutorAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return doctor.Fail("advertise_unusable", "Give host:port with --advertise.", "executors are told to dial %s: %v", address, err)
	}
	listens, _, _ := net.SplitHostPort(e.ExecutorAddress) // a node takes it
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		return doctor.Fail("advertise_no_address", "Name the address under which executors reach this machine: --advertise HOST:PORT", "executors are told to dial %s, which is no address", address)
	case egress.Loopback(host) && !egress.Loopback(listens):
		return doctor.Warn("advertise_loopback", "Name the address under which executors reach this machine: --advertise HOST:PORT", "executors are told to dial %s, which leads other machines to themselves", address)
	case ip == nil:
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return doctor.Warn("advertise_unknown", "Enter the name in the name service, or give an address with --advertise.", "executors are told to dial %s: %v", address, err)
		}
	}
	return doctor.Passed("executors are told to dial %s", address)
}

func (e *examination) lookAtHTTPCertificate(ctx context.Context) []doctor.Result {
	if e.TLSCertFile == "" {
		return []doctor.Result{doctor.Skip("UI and API are without TLS (--tls-cert)")}
	}
	return certificate(ctx, e.TLSCertFile, e.TLSKeyFile, e.HTTPAddress, hostOf(e.BaseURL))
}

func (e *examination) lookAtExecutorCertificate(ctx context.Context) []doctor.Result {
	if e.ExecutorTLSCertFile == "" {
		return []doctor.Result{doctor.Skip("the executors' port is without TLS (--executors-tls-cert)")}
	}
	host, _, _ := net.SplitHostPort(e.AdvertiseAddress) // empty when it is
	return certificate(ctx, e.ExecutorTLSCertFile, e.ExecutorTLSKeyFile, e.ExecutorAddress, host)
}

// certificate looks at the files, and at what a node that serves at the address has loaded.
func certificate(ctx context.Context, cert, key, address, host string) []doctor.Result {
	return append(doctor.Certificate(cert, key, time.Now(), host), doctor.Loaded(ctx, address, cert, key)...)
}
