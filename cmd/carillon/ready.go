package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

// newReadyCommand is for service managers and containers that have nothing else
// to ask with.
func newReadyCommand() *cobra.Command {
	var wait time.Duration
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask this machine's admin node whether it serves (exit code 0) or not (1)",
		Long: `Asks /readyz of the node that runs on this machine with the same settings:
flags, CARILLON_ variables and the file of --config.`,
		Example: "  carillon ready\n  carillon ready --wait 60s --config /etc/carillon/server.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := serverSettings(flags)
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			asked, err := newReadiness(k)
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), max(wait, readyTimeout))
			defer cancel()
			for {
				err := asked.ask(ctx)
				if err == nil || wait == 0 || ctx.Err() != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return err
				case <-time.After(readyPause):
				}
			}
		},
	}
	flags = someServerFlags(cmd, "config", "http", "tls-cert", "tls-key")
	settings.SpanVar(cmd.Flags(), &wait, "wait", 0, "how long to ask again while it does not serve (default: not at all)")
	return cmd
}

const (
	readyTimeout = 3 * time.Second
	readyPause   = 250 * time.Millisecond
)

// readiness asks one node.
type readiness struct {
	client *http.Client
	url    string
}

func newReadiness(k *koanf.Koanf) (*readiness, error) {
	address := k.String("http")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	// Whoever listens on all addresses is reached on loopback: by number, since an
	// image may have no hosts file.
	switch ip, err := netip.ParseAddr(host); {
	case host == "" || err == nil && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	r := &readiness{&http.Client{Timeout: readyTimeout}, "http://" + net.JoinHostPort(host, port) + "/readyz"}
	if path := k.String("tls-cert"); path != "" {
		config, err := trustOnly(path)
		if err != nil {
			return nil, fmt.Errorf("tls-cert: %w", err)
		}
		r.client.Transport = &http.Transport{TLSClientConfig: config}
		r.url = "https" + strings.TrimPrefix(r.url, "http")
	}
	return r, nil
}

// trustOnly takes for the node who has the certificate that it was given, under
// whatever address it is asked.
func trustOnly(path string) (*tls.Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("no certificate in PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	switch {
	case len(leaf.DNSNames) > 0:
		config.ServerName = strings.Replace(leaf.DNSNames[0], "*", "node", 1)
	case len(leaf.IPAddresses) > 0:
		config.ServerName = leaf.IPAddresses[0].String()
	}
	return config, nil
}

// maxReady bounds the answer that is shown.
const maxReady = 4 << 10

func (r *readiness) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("the node does not answer: %w", err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxReady))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the node does not serve (%s): %s", response.Status, strings.TrimSpace(string(said)))
	}
	return nil
}
