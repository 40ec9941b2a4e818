package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
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
		if err := c.Check("path.name", "body."); err != nil {
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

// cellKind is the kind of documents that are cells.
var cellKind = resource.Of(resource.Kind{
	Name: "Cell", Component: "CellDocument", Noun: "cell", Path: "cells", Read: domain.PermRead, Edit: domain.PermEdit, Cluster: true,
}, resource.Rules[CellAddresses]{})

// CellAddresses are what is written of a cell beside its name.
type CellAddresses struct {
	URL       string   `json:"url" maxLength:"2000" doc:"Of its API and console, as clients reach it"`
	Executors []string `json:"executors" minItems:"1" maxItems:"16" doc:"Addresses of its executor ports, host:port, as executors reach them"`
}

// registerCellDocuments adds cells as documents.
func (a *api) registerCellDocuments() {
	k := &document.Kept[CellAddresses]{
		Kind: cellKind, NewID: func() int64 { return 0 }, // a cell is known by its name, which is the same in all cells
		Read: a.readCells, Check: checkCell, Write: a.writeCell,
		Remove: func(ctx context.Context, _ auth.Identity, old *resource.Document[CellAddresses]) error {
			return a.deps.Store.DeleteCell(ctx, old.Name)
		},
	}
	op := k.Add(a.Server)
	op.Tag, op.Summary, op.Description = "platform", "List the other cells as documents", "By name, as apply-documents takes them."
	web.Register(a.Server, web.PlatformAdmin, op, func(ctx context.Context, _ auth.Identity, _ *web.PageQuery) (*document.List, error) {
		cells, err := a.deps.Store.ListCells(ctx)
		if err != nil {
			return nil, err
		}
		return k.Page(domain.Collect(cells, cellDocument), nil)
	})
}

// cellDocument is a cell as a document. Its id is of its name: sets of documents know it so.
func cellDocument(c *domain.Cell) *resource.Document[CellAddresses] {
	return &resource.Document[CellAddresses]{
		Meta: resource.Meta{ID: cellID(c.Name), Name: c.Name, Version: 1, CreatedAt: c.CreatedAt, CreatedBy: c.CreatedBy, UpdatedAt: c.CreatedAt, UpdatedBy: c.CreatedBy},
		Spec: CellAddresses{URL: c.URL, Executors: c.Executors},
	}
}

func cellID(name string) int64 {
	digest := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(digest[:]) >> 1) // 63 bits
}

func (a *api) readCells(ctx context.Context, _ auth.Identity, names []string, ids []int64) ([]*resource.Document[CellAddresses], error) {
	cells, err := a.deps.Store.ListCells(ctx)
	if err != nil {
		return nil, err
	}
	byName, byID := map[string]*resource.Document[CellAddresses]{}, map[int64]*resource.Document[CellAddresses]{}
	for i := range cells {
		d := cellDocument(&cells[i])
		byName[d.Name], byID[d.ID] = d, d
	}
	var out []*resource.Document[CellAddresses]
	for _, name := range names {
		out = append(out, byName[name])
	}
	for _, id := range ids {
		out = append(out, byID[id])
	}
	return out, nil
}

func checkCell(_ context.Context, _ auth.Identity, d *resource.Draft[CellAddresses], _ resource.Coming) error {
	c := domain.Cell{Name: d.Name, URL: d.Spec.URL, Executors: d.Spec.Executors}
	return c.Check("body.name", "body.spec.")
}

func (a *api) writeCell(ctx context.Context, id auth.Identity, meta resource.Meta, _ *resource.Document[CellAddresses], spec *CellAddresses) (int64, error) {
	c := domain.Cell{Name: meta.Name, URL: spec.URL, Executors: spec.Executors, CreatedAt: a.deps.Now(), CreatedBy: id.Actor()}
	if err := a.deps.Store.SaveCell(ctx, c); err != nil {
		return 0, err
	}
	a.deps.Log.Info("cell saved", "cell", c.Name, "url", c.URL, "by", c.CreatedBy)
	return 1, nil
}
