package tenant

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cell is another cluster of the installation.
type Cell struct {
	Name      string   `json:"name" doc:"Its name, the same in all cells"`
	URL       string   `json:"url" doc:"Of its API and console"`
	Executors []string `json:"executors" doc:"Addresses of its executor ports, host:port"`
	CreatedAt string   `json:"createdAt" format:"date-time" doc:"When it was added here"`
	CreatedBy string   `json:"createdBy" doc:"Who added it"`
}

func cellOf(c *domain.Cell) Cell {
	return Cell{Name: c.Name, URL: c.URL, Executors: c.Executors, CreatedAt: web.Instant(c.CreatedAt), CreatedBy: c.CreatedBy}
}

type saveCellInput struct {
	Name string `path:"name" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	Body struct {
		URL       string   `json:"url" maxLength:"2000" doc:"Of its API and console, as clients reach it"`
		Executors []string `json:"executors" minItems:"1" maxItems:"16" doc:"Addresses of its executor ports, host:port, as executors reach them"`
	}
}

type cellNameInput struct {
	Name string `path:"name" maxLength:"64" doc:"Of the cell"`
}

func (a *api) registerCells() {
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/cells", ID: "list-cells", Tag: "platform", Summary: "List the other cells of the installation",
		Description: "Clusters with databases of their own, where tenants can live. Who asks here for a tenant that lives there is told so (tenant_elsewhere).",
	}, func(ctx context.Context, _ auth.Identity, in *web.PageQuery) (*web.PageOutput[Cell], error) {
		cells, err := a.deps.Store.ListCells(ctx)
		return web.ListPage(cells, err, cellOf, in.ShortPage, "cells")
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPut, Path: web.Base + "/cells/{name}", ID: "save-cell", Tag: "platform", Summary: "Add a cell, or change its addresses",
		Description: "All nodes tell the new addresses within a second.", Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *saveCellInput) (*struct{ Body Cell }, error) {
		c := domain.Cell{Name: in.Name, URL: in.Body.URL, Executors: in.Body.Executors, CreatedAt: a.deps.Now(), CreatedBy: id.Actor()}
		if err := c.Check(); err != nil {
			return nil, err
		}
		if err := a.deps.Store.SaveCell(ctx, c); err != nil {
			return nil, err
		}
		a.deps.Log.Info("cell saved", "cell", c.Name, "url", c.URL, "by", c.CreatedBy)
		return &struct{ Body Cell }{cellOf(&c)}, nil
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/cells/{name}", ID: "delete-cell", Tag: "platform", Summary: "Forget a cell",
		Description: "Not while tenants of this cell live there.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *cellNameInput) (*struct{}, error) {
		if err := a.deps.Store.DeleteCell(ctx, in.Name); err != nil {
			return nil, err
		}
		a.deps.Log.Info("cell forgotten", "cell", in.Name, "by", id.Actor())
		return nil, nil
	})
}
