package domain

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Cell is another cluster of the installation: it has nodes and a database of its own,
// and the tenants that live there (docs/adr/0088).
type Cell struct {
	Name string
	// URL is that of its API and console.
	URL string
	// Executors are the addresses of its executor ports, host:port.
	Executors []string
	CreatedAt time.Time
	CreatedBy string
}

// Bounds of cells.
const (
	MaxCells         = 1000
	MaxCellExecutors = 16
)

// CellNames are as those of tenants.
var CellNames = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$|^[a-z]$`)

// Check says what of a cell cannot be used. name is the location of the name, and below the one
// that the other fields are below, such as "body.".
func (c *Cell) Check(name, below string) error {
	if !CellNames.MatchString(c.Name) {
		return Invalid(name, "must be lower-case letters, digits and hyphens, beginning with a letter")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Invalid(below+"url", "must be the address of API and console, such as https://eu2.carillon.example.com")
	}
	if len(c.Executors) == 0 || len(c.Executors) > MaxCellExecutors {
		return Invalid(below+"executors", "must be 1 to %d addresses of executor ports", MaxCellExecutors)
	}
	for _, address := range c.Executors {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || strings.Contains(address, ",") || len(address) > 128 {
			return Invalid(below+"executors", "%q is not host:port", address)
		}
	}
	return nil
}

// NotHere is what becomes of a request of a tenant that is not, or not yet, in this
// cell; nil: it is here. cell is where it lives.
func (s TenantState) NotHere(cell *Cell) error {
	switch s {
	case TenantMoving:
		err := Errorf(CodeTenantMoving, "the tenant is moving to another cell; ask again in a moment")
		err.RetryAfter = time.Second
		return err
	case TenantMoved:
		err := Errorf(CodeTenantElsewhere, "the tenant lives in the cell %s: ask %s", cell.Name, cell.URL)
		err.Cell = cell
		return err
	}
	return nil
}
