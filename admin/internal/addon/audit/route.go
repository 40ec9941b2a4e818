package audit

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// verifyOnce is how many entries one request verifies. An entry has up to 17 KiB.
const verifyOnce = 200

// AuditEntry is an entry as the API shows it.
type AuditEntry struct {
	ID         string `json:"id" doc:"Id of the entry, a decimal string"`
	At         string `json:"at" format:"date-time" doc:"When it happened"`
	Actor      string `json:"actor" doc:"Name of the user, or key: and the name of the API key; of a failed sign-in, the name that was given"`
	UserID     string `json:"userId,omitempty" doc:"Id of the user"`
	KeyID      string `json:"keyId,omitempty" doc:"Id of the API key"`
	Operation  string `json:"operation" doc:"Id of the operation in this document; delete-documents: apply-documents with delete; provision, first-start, declare-jobs: a node or an application has done it"`
	Outcome    string `json:"outcome" enum:"done,refused" doc:"Whether it was done"`
	Code       string `json:"code,omitempty" doc:"Why it was refused"`
	Kind       string `json:"kind" doc:"Kind of the object, such as job"`
	ObjectID   string `json:"objectId,omitempty" doc:"Id or name of the object in the address, or its id"`
	ObjectName string `json:"objectName,omitempty" doc:"Name of the object"`
	Before     string `json:"before,omitempty" doc:"The object before, as JSON of at most 8 KiB, without secrets"`
	After      string `json:"after,omitempty" doc:"The object after, likewise"`
	Address    string `json:"address" doc:"Address of the client"`
	RequestID  string `json:"requestId" doc:"Id of the request, as in the server's log"`
	Seq        int64  `json:"seq" doc:"Number in the chain of the tenant; 0: not chained yet; -1: forged, no node has written the entry"`
	Hash       string `json:"hash,omitempty" doc:"Keyed hash of the entry and of the one before it"`
}

// AuditHead is the last entry of a chain.
type AuditHead struct {
	Seq  int64  `json:"seq" doc:"Its number; 0: there is none"`
	ID   string `json:"id" doc:"Its id"`
	Hash string `json:"hash" doc:"Its hash"`
}

// AuditFault is a difference between the log and its chain.
type AuditFault struct {
	Kind    string `json:"kind" enum:"missing,edited,cut,head,forged,order" doc:"missing: entries are gone; edited: an entry was changed or moved; cut: the end is gone, or the log was put back; head: the ends of the chain were changed; forged: no node has written the entry; order: an entry is much older than the one before it"`
	Seq     int64  `json:"seq" doc:"Number of the entry where it shows; 0: none"`
	ID      string `json:"id" doc:"Its id"`
	Message string `json:"message" doc:"The fault in words"`
}

// AuditVerification is the result of one step along the chain.
type AuditVerification struct {
	Checked   int          `json:"checked" doc:"Entries of this step"`
	Last      int64        `json:"last" doc:"Number of its last entry: give it as after for the next step"`
	Done      bool         `json:"done" doc:"Whether the end was reached; head and unchained are known then"`
	Faults    []AuditFault `json:"faults" doc:"What this step has found"`
	Head      AuditHead    `json:"head" doc:"The end of the chain, to be kept elsewhere"`
	Unchained int64        `json:"unchained" doc:"Entries that are not chained yet; they are a few seconds old"`
}

// Scope chooses the tenant of the caller, or the cluster. It is exported because huma passes
// over embedded fields that are not.
type Scope struct {
	Cluster bool `query:"cluster" doc:"The log of the cluster instead of the tenant's; for platform administrators"`
}

func (s *Scope) tenant(id auth.Identity) (domain.TenantID, error) {
	if !s.Cluster {
		return id.Tenant, nil
	}
	if !id.PlatformAdmin {
		return 0, domain.Errorf(domain.CodeDenied, "only a platform administrator may read the log of the cluster")
	}
	return 0, nil
}

type listInput struct {
	web.PageParams
	Scope
	Actor     string    `query:"actor" maxLength:"190" doc:"Only of this actor"`
	Operation string    `query:"operation" maxLength:"190" doc:"Only this operation, by its id in this document. Refused if nothing is found and there is no such operation"`
	Outcome   string    `query:"outcome" enum:"done,refused" doc:"Only with this outcome"`
	Kind      string    `query:"kind" maxLength:"190" doc:"Only about objects of this kind. Refused if nothing is found and there is no such kind"`
	Object    string    `query:"object" maxLength:"190" doc:"Only about the object with this id or name"`
	From      time.Time `query:"from" doc:"Only since this instant"`
	To        time.Time `query:"to" doc:"Only before this instant"`
}

type verifyInput struct {
	Scope
	After    int64  `query:"after" minimum:"0" doc:"Number of the last entry of the step before; default: begin"`
	HeadSeq  int64  `query:"headSeq" minimum:"0" doc:"Number of a head that was kept elsewhere"`
	HeadHash string `query:"headHash" maxLength:"64" doc:"Its hash"`
}

type routes struct {
	table Table
	// names are web.Server.AuditNames.
	names func() (operations, kinds []string)
}

// others are operations and kinds of entries that no request has made.
var (
	otherOperations = []string{"declare-jobs", "delete-documents", "first-start", "provision"}
	otherKinds      = []string{"document set", "run"}
)

// Routes adds the operations.
func Routes(s *web.Server, table Table) {
	a := &routes{table, s.AuditNames}
	web.Register(s, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/audit", ID: "list-audit-entries", Tag: "access", Large: true, Summary: "Who has changed what",
		Description: "The newest first. Each change through the API has an entry of the same transaction, apart from timers and calls. Refusals and failed sign-ins have entries, too, within bounds of their rate.",
	}, a.list)
	web.Register(s, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/audit/verification", ID: "verify-audit-log", Tag: "access", Computes: true, Summary: "Verify the chain of the audit log",
		Description: "One step along the chain, from the oldest entry on. Repeat it with after until it is done.",
	}, a.verify)
}

func (a *routes) list(ctx context.Context, id auth.Identity, in *listInput) (*web.PageOutput[AuditEntry], error) {
	tenant, err := in.tenant(id)
	if err != nil {
		return nil, err
	}
	at, err := web.DecodeCursor(in.Cursor, "audit")
	if err != nil {
		return nil, err
	}
	rows, more, err := a.table.List(ctx, Filter{
		Tenant: tenant, Actor: in.Actor, Operation: in.Operation, Outcome: in.Outcome, Kind: in.Kind, Object: in.Object, From: in.From, To: in.To, Below: at.ID, Limit: in.Limit,
	})
	if err == nil && len(rows) == 0 && in.Cursor == "" {
		err = a.unknown(in)
	}
	return web.StoredPage(rows, more, err, entryOf, func(last *domain.ChainedEntry) web.Cursor { return web.Cursor{List: "audit", ID: last.ID} })
}

// unknown is the mistake of a filter that finds nothing because there is no such kind or operation.
// Those of earlier versions are found while they have entries.
func (a *routes) unknown(in *listInput) error {
	operations, kinds := a.names()
	operations, kinds = append(operations, otherOperations...), append(kinds, otherKinds...)
	slices.Sort(kinds)
	var r web.Reader
	if in.Kind != "" && !slices.Contains(kinds, in.Kind) {
		r.NoneOf("query.kind", in.Kind, slices.Compact(kinds))
	}
	if in.Operation != "" && !slices.Contains(operations, in.Operation) {
		r.Unknown("query.operation", in.Operation, operations, "%q is no operation: use the id of one in the API's document, such as delete-job, or one of %s", in.Operation, strings.Join(otherOperations, ", "))
	}
	return r.Err()
}

func entryOf(e *domain.ChainedEntry) AuditEntry {
	hash := e.Hash
	if e.Seq <= 0 { // it is the mark
		hash = ""
	}
	return AuditEntry{
		ID: text(e.ID), At: web.Instant(e.At()), Actor: e.Actor, UserID: known(int64(e.User)), KeyID: known(e.Key), Operation: e.Operation,
		Outcome: e.Outcome, Code: string(e.Code), Kind: e.Kind, ObjectID: e.AuditObject.ID, ObjectName: e.Name, Before: e.Before, After: e.After,
		Address: e.Address, RequestID: e.Request, Seq: e.Seq, Hash: hash,
	}
}

func text(id int64) string { return domain.JobID(id).String() }

func known(id int64) string {
	if id == 0 {
		return ""
	}
	return text(id)
}

func (a *routes) verify(ctx context.Context, id auth.Identity, in *verifyInput) (*struct{ Body AuditVerification }, error) {
	tenant, err := in.tenant(id)
	if err != nil {
		return nil, err
	}
	v, err := a.table.Verify(ctx, tenant, in.After, Head{Seq: in.HeadSeq, Hash: in.HeadHash}, verifyOnce)
	if err != nil {
		return nil, err
	}
	out := AuditVerification{
		Checked: v.Checked, Last: v.Last.Seq, Done: v.Done, Unchained: v.Unchained, Head: AuditHead{v.Head.Seq, text(v.Head.ID), v.Head.Hash},
		Faults: domain.Collect(v.Faults, func(f *Fault) AuditFault { return AuditFault{f.Kind, f.Seq, text(f.ID), f.Message} }),
	}
	return &struct{ Body AuditVerification }{out}, nil
}
