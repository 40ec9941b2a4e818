package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// buildOf names what an instance registers by its digest: instances of one
// build register the same, in the same order.
func buildOf(p *peer, r *proto.Register) (domain.Build, error) {
	catalogue, err := gproto.MarshalOptions{Deterministic: true}.Marshal(&proto.Register{
		AppVersion: r.AppVersion, Generation: r.Generation, Handlers: r.Handlers,
	})
	if err != nil {
		return domain.Build{}, fmt.Errorf("encode catalogue: %w", err)
	}
	sum := sha256.Sum256(catalogue)
	b := domain.Build{
		TenantID: p.tenant, Executor: p.executor, Digest: hex.EncodeToString(sum[:16]), Version: r.AppVersion,
		Generation: r.Generation, NoJobs: p.noJobs, Handlers: make([]string, 0, len(r.Handlers)), Catalogue: catalogue,
	}
	for _, h := range r.Handlers {
		b.Handlers = append(b.Handlers, h.Name)
	}
	return b, nil
}
