package apply

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

type kindInput struct {
	Kind string `path:"kind" maxLength:"64" doc:"Name of the kind, as in the field kind"`
}

type schemaOutput struct{ Body json.RawMessage }

// schema answers with the schema of a kind, as editors use it.
func (a *api) schema(_ context.Context, _ auth.Identity, in *kindInput) (*schemaOutput, error) {
	for _, k := range a.server.Kinds().List() {
		if k.Name == in.Kind {
			raw, err := a.server.Kinds().JSONSchema(&k)
			return &schemaOutput{raw}, err
		}
	}
	names := domain.Collect(a.server.Kinds().List(), func(k *web.DocumentKind) string { return k.Name })
	return nil, domain.Errorf(domain.CodeNotFound, "there is no kind %q: use %s", in.Kind, strings.Join(names, ", "))
}
