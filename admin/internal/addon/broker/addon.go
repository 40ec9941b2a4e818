// Package broker answers: how do messages of a tenant reach a message broker?
//
// A connection of the tenant says where a broker is and how to log in (route.go, table.go).
// The handler publish of the built-in executor sends a message through one (handler.go) by
// package publish, which knows the brokers (docs/adr/0071).
package broker

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/publish"
	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/internal/egress"
)

// allow is the setting with the private networks that connections may lead to.
const allow = "connection-allow"

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "broker", Check: check, Build: build,
		Settings: []addon.Setting{{
			Name: allow, Kind: addon.List, Usage: "private networks that connections to brokers may lead to, for example 10.1.0.0/16",
		}},
		Tables: []db.OwnedTable{{Name: "connections", Key: "id", Secret: true}},
		Doctor: []addon.Doctor{{ID: "brokers", Look: look, Sealed: sealed}},
	}
}

func check(v addon.Values) error {
	if _, err := egress.ParseNetworks(v.List(allow)); err != nil {
		return fmt.Errorf("%s: %w", allow, err)
	}
	return nil
}

func build(n addon.Node) (addon.Parts, error) {
	networks, err := egress.ParseNetworks(n.Settings.List(allow))
	if err != nil {
		return addon.Parts{}, err
	}
	table := NewTable(n.DB, n.EnsureBuiltIn)
	publisher := publish.New(publish.Options{
		Connections: table, Secrets: n.Secrets, AllowPrefixes: networks, Logger: n.Logger.With("component", "publish"),
	})
	try := func(ctx context.Context, m noun.Message) (bool, error) {
		err := publisher.Try(ctx, m)
		return publish.IsPermanent(err), err
	}
	return addon.Parts{
		Run: publisher.Run,
		Handlers: []nodehandler.Handler{handler(table, func(ctx context.Context, m noun.Message) (permanent, silent bool, err error) {
			err = publisher.Publish(ctx, m)
			return publish.IsPermanent(err), publish.IsSilent(err), err
		}, try, n.NewID)},
		Routes: func(s *web.Server) {
			Routes(s, Deps{
				Table: table, Secrets: n.Secrets, NewID: n.NewID, Changed: builtin.Within(n.BuiltInChanged), Log: n.Logger.With("component", "api"),
				Publish: try,
			})
		},
	}, nil
}
