package callback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// sampleEnd is the end of a run with the fields that each end has. Requests are checked with it.
const sampleEnd = `{"runId":"1","job":"job","handler":"handler","fireTime":"2026-01-01T00:00:00.000Z","attempt":1,"state":"succeeded","trial":true}`

// sampleFailure is the same of a run that has failed.
const sampleFailure = `{"runId":"1","job":"job","handler":"handler","fireTime":"2026-01-01T00:00:00.000Z","attempt":1,"state":"failed","error":"this is a trial","trial":true}`

// Store is what is asked of the database.
type Store interface {
	store.Executors
	builtin.Store
}

// Chooser reads callbacks for one caller.
type Chooser struct {
	Store    Store
	Handlers nodehandler.List
	ID       auth.Identity
	Own      domain.Executor // of the job
	Allow    catalogue.Lenient
	declared bool // in the code of Own
}

// Choose reads one callback. at is its place in the body, and was is the callback that it replaces. If they are the same, the
// rights of the caller and the tenant's policy do not count.
func (c Chooser) Choose(ctx context.Context, at string, t *CallbackTarget, was domain.FollowUp) (f domain.FollowUp, err error) {
	if wrong := t.wrongFields(); wrong != "" {
		return f, domain.Invalid(at, "%s", wrong)
	}
	switch {
	case t.URL != "":
		return c.chooseAddress(ctx, at, t, was)
	case t.Connection != nil:
		return c.chooseConnection(ctx, at, t, was)
	}
	f.Handler = t.Handler
	if t.Executor == nil || !f.Any() {
		return f, nil
	}
	e, err := ChooseExecutor(ctx, c.Store, c.ID.Tenant, domain.Reach{}, at+".executor", *t.Executor)
	if err != nil && c.declared && domain.Is(err, domain.CodeNotFound) && !slices.Contains(c.Own.CallbacksTo, t.Executor.Name) {
		return f, c.notAllowed(at, t.Executor.Name)
	}
	if err != nil {
		return f, err
	}
	if e.ID == c.Own.ID {
		return f, nil
	}
	f.Executor = e.ID
	switch {
	case f == was:
		return f, nil
	case !c.ID.Reach.Has(e.ID) && c.declared:
		return f, c.notAllowed(at, e.Name)
	case !c.ID.Reach.Has(e.ID):
		_, err := ChooseExecutor(ctx, c.Store, c.ID.Tenant, domain.Within(), at+".executor", *t.Executor)
		return f, err // as of an executor that does not exist
	case e.BuiltIn:
		return f, domain.Invalid(at, "handlers of the executor %s cannot take the end of a run as their input: use url or connection", e.Name)
	case c.Allow.Handler:
		return f, nil
	}
	_, err = catalogue.Known(ctx, c.Store, c.ID.Tenant, e, f.Handler, catalogue.HintSave)
	return f, relocated(err, "body", at)
}

// ChooseExecutor finds the executor that a choice names, within reach. at is its place in the
// body.
func ChooseExecutor(ctx context.Context, from store.Executors, tenant domain.TenantID, within domain.Reach, at string, c ExecutorChoice) (e domain.Executor, err error) {
	location, value := at+".id", c.ID
	switch {
	case c.ID != "":
		e, err = web.ByID(ctx, tenant, c.ID, from.FindExecutor)
	case c.Name != "":
		location, value = at+".name", c.Name
		e, err = from.FindExecutorByName(ctx, tenant, c.Name)
	default:
		return e, domain.Invalid(at, "needs an id or a name")
	}
	if domain.Is(err, domain.CodeNotFound) || err == nil && !within.Has(e.ID) {
		return e, web.NotThere(location, "executor", value)
	}
	return e, err
}

// wrongFields says which fields contradict each other.
func (t *CallbackTarget) wrongFields() string {
	kinds := 0
	for _, is := range []bool{t.Handler != "", t.URL != "", t.Connection != nil} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return "has more than one of handler, url and connection: use one"
	case kinds == 0 && (t.Executor != nil || t.Target != nil || t.Timeout != "" || len(t.Headers) > 0):
		return "needs a handler, a url or a connection"
	case t.Executor != nil && t.Handler == "":
		return "has an executor without a handler: leave executor out"
	case t.URL == "" && (t.Timeout != "" || len(t.Headers) > 0):
		return "has a timeout or headers without a url: leave them out"
	case t.Target != nil && t.Connection == nil:
		return "has a target without a connection: leave target out"
	}
	return ""
}

func (c Chooser) chooseAddress(ctx context.Context, at string, t *CallbackTarget, was domain.FollowUp) (f domain.FollowUp, err error) {
	f.Handler = domain.CallbackHandler
	if f.Request, err = builtin.CallRequest(strings.TrimSpace(t.URL), t.Timeout, t.Headers); err != nil {
		return f, err
	}
	return c.checkRequest(ctx, at, f, "", was)
}

func (c Chooser) chooseConnection(ctx context.Context, at string, t *CallbackTarget, was domain.FollowUp) (f domain.FollowUp, err error) {
	sender, is := c.Handlers.Sender()
	if !is {
		return f, domain.Invalid(at+".connection", "this server has no connections: use a handler or a url")
	}
	f.Handler = sender.Name
	name := t.Connection.Name
	if t.Connection.ID != "" {
		id, err := domain.ParseID[domain.JobID](t.Connection.ID)
		if err != nil {
			return f, web.NotThere(at+".connection.id", "connection", t.Connection.ID)
		}
		names, err := sender.Connections.Names(ctx, c.ID.Tenant, []int64{int64(id)})
		if err != nil {
			return f, err
		}
		name = names[int64(id)]
	}
	f.Connection, err = sender.Connections.Find(ctx, c.ID.Tenant, name)
	if domain.Is(err, domain.CodeNotFound) {
		return f, web.NotThere(at+".connection", "connection", cmp.Or(t.Connection.ID, t.Connection.Name))
	}
	if err != nil {
		return f, err
	}
	to := builtin.MessageTarget{}
	if t.Target != nil {
		to = *t.Target
	}
	if f.Request, err = builtin.MessageRequest(to); err != nil {
		return f, err
	}
	return c.checkRequest(ctx, at, f, name, was)
}

// checkRequest holds a request against the tenant's policy and its connection.
func (c Chooser) checkRequest(ctx context.Context, at string, f domain.FollowUp, connection string, was domain.FollowUp) (domain.FollowUp, error) {
	builtIn, err := c.Store.FindExecutorByName(ctx, c.ID.Tenant, domain.BuiltInExecutor)
	if domain.Is(err, domain.CodeNotFound) {
		return f, domain.Errorf(domain.CodePolicyRefused, "callbacks are off for this tenant; a platform administrator switches them on (carillon script policy)")
	}
	if err != nil {
		return f, err
	}
	f.Executor = builtIn.ID
	if f == was {
		return f, nil
	}
	if !c.ID.Reach.Has(builtIn.ID) && c.declared {
		return f, c.notAllowed(at, builtIn.Name)
	}
	if !c.ID.Reach.Has(builtIn.ID) {
		return f, domain.Errorf(domain.CodeDenied, "a callback to an address or a connection runs on the executor %s, and your rights are for other executors", builtIn.Name)
	}
	input, err := f.Input(connection, []byte(sampleEnd))
	if err != nil {
		return f, err
	}
	return f, relocated(builtin.Inputs(ctx, c.Store, c.Handlers, c.ID.Tenant)(f.Handler, input), "body.input", at)
}

// relocated moves the fields of an error from one place of the body to another.
func relocated(err error, from, to string) error {
	var wrong *domain.Error
	if !errors.As(err, &wrong) || len(wrong.Fields) == 0 {
		return err
	}
	moved := *wrong
	moved.Fields = slices.Clone(wrong.Fields)
	for i := range moved.Fields {
		f := &moved.Fields[i]
		f.Location = to + strings.TrimPrefix(f.Location, from)
	}
	if rest, is := strings.CutPrefix(moved.Message, wrong.Fields[0].Location+": "); is {
		moved.Message = moved.Fields[0].Location + ": " + rest
	}
	return &moved
}
