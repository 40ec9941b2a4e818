package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/provision"
)

// ProvisionError has the mistakes of a provision file, by line.
type ProvisionError = provision.Error

// CheckProvision judges a provision file, or a folder of such files, with its secrets as New does,
// and counts what it declares. What is wrong is a *ProvisionError. dir is a folder for a temporary
// one; empty: that of the system.
func CheckProvision(ctx context.Context, path, dir string) (summary string, err error) {
	d, err := provision.Read(path, os.LookupEnv)
	if err == nil {
		err = Config{}.tryProvision(ctx, d, dir)
	}
	if err != nil {
		return "", err
	}
	return d.Summary(), nil
}

// readProvision reads the provision file, if there is one, before anything is opened.
func (a *Admin) readProvision(ctx context.Context) (err error) {
	if a.config.ProvisionFile == "" {
		return nil
	}
	if a.provision, err = provision.Read(a.config.ProvisionFile, os.LookupEnv); err != nil {
		return err
	}
	if err := a.config.tryProvision(ctx, a.provision, a.config.DataDir); err != nil {
		return err
	}
	switch given := a.provision.AdminPassword(); {
	case given != "" && a.config.AdminPassword != "":
		return a.provision.Given()
	case given != "":
		a.config.AdminPassword = given
	}
	return nil
}

// tryProvision makes the documents on a node that listens nowhere, with an empty database in a
// temporary folder below dir.
func (c Config) tryProvision(ctx context.Context, d *provision.Declaration, dir string) (err error) {
	if dir, err = os.MkdirTemp(dir, "provision-"); err != nil {
		return fmt.Errorf("try the provision file: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config, err := Config{
		DataDir: dir, NodeName: "trial", AdvertiseAddress: "127.0.0.1:7070", BaseURL: "http://127.0.0.1:8080", NoFire: true,
		AddOns: c.AddOns, Webhook: c.Webhook, Logger: slog.New(slog.DiscardHandler), Version: c.Version,
	}.withDefaults()
	if err != nil {
		return err
	}
	node := &Admin{config: config, log: config.Logger}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := node.open(ctx); err != nil {
		return fmt.Errorf("try the provision file: %w", err)
	}
	return d.Try(ctx, node.server, node.store)
}

// provisionLimit bounds the time for the documents of the provision file at a start.
const provisionLimit = time.Minute

// applyProvision makes what the provision file declares.
func (a *Admin) applyProvision(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, provisionLimit)
	defer cancel()
	if a.provision != nil {
		if err := a.provision.Apply(ctx, a.server, a.store, a.log.With("component", "provisioning")); err != nil {
			return fmt.Errorf("provision: %w", err)
		}
		a.provision = nil // and its passwords
	}
	if a.config.NoFire {
		return nil
	}
	return a.provisioned(ctx)
}
