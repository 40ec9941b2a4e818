package apply

import (
	"regexp"
	"strconv"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// documents are documents of files.
type documents []placed

// placed is a document with the tenant that it names.
type placed struct {
	tenant string
	cli.Placed
}

// ofDocument is the location of a field in a request with documents.
var ofDocument = regexp.MustCompile(`^body\.documents\[(\d+)\]\.?(.*)$`)

// named is an error of the server with the places in the files, in the order of the files.
func (d documents) named(err error) error {
	return cli.Named(err, func(location string) (int, *cli.Placed, string) {
		parts := ofDocument.FindStringSubmatch(location)
		if parts == nil {
			return 0, nil, ""
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil || n >= len(d) {
			return 0, nil, ""
		}
		return n, &d[n].Placed, parts[2]
	})
}

// of is the place of the document of a plan's item; empty: no file has it.
func (d documents) of(item *apiclient.PlanItem) string {
	for i := range d {
		if p := &d[i]; p.TextOf("kind") == item.Kind && p.TextOf("name") == item.Name {
			return p.At("")
		}
	}
	return ""
}
