package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cluster is the engine at a glance: who plans what, how far behind it is, and
// what it stands on.
type Cluster struct {
	Now         string             `json:"now" format:"date-time" doc:"The database's clock, which decides"`
	Database    ClusterDatabase    `json:"database" doc:"The database and how it answers"`
	Clock       ClusterClock       `json:"clock" doc:"Whether the database's clock is believed"`
	History     ClusterHistory     `json:"history" doc:"Whether the database has kept what it had committed"`
	ZonesDiffer bool               `json:"zonesDiffer" doc:"Nodes have different rules of time zones: one may plan other fire times than the next"`
	Nodes       []ClusterNode      `json:"nodes" doc:"By id; those that were heard of in the last minute"`
	Partitions  []ClusterPartition `json:"partitions" doc:"All 64, by number"`
}

// ClusterDatabase is the database as this node sees it.
type ClusterDatabase struct {
	Kind      string            `json:"kind" enum:"sqlite,mariadb,mysql" doc:"Which product it is"`
	Version   string            `json:"version" doc:"The version, as the server says it"`
	Role      string            `json:"role" enum:"primary,replica" doc:"Whether it takes writes, or follows another server"`
	ReadOnly  bool              `json:"readOnly" doc:"The server refuses writes"`
	LatencyMs float64           `json:"latencyMs" doc:"One round trip from this node"`
	Findings  []DatabaseFinding `json:"findings" doc:"What about its setup endangers the promises; for administrators, others get none"`
	Group     *DatabaseGroup    `json:"group" doc:"The cluster that the server is part of, for administrators; null = none"`
}

// DatabaseGroup is a cluster of database servers as the one that answered sees it.
type DatabaseGroup struct {
	Kind      string           `json:"kind" enum:"galera,group_replication" doc:"How the servers replicate"`
	State     string           `json:"state" doc:"State of the server that answered, in the product's words"`
	Quorum    bool             `json:"quorum" doc:"That server is with the majority"`
	Writer    string           `json:"writer" doc:"Id of the server that all nodes write through; empty = unknown"`
	Members   []DatabaseMember `json:"members" doc:"The servers that it knows; one that it cannot reach may be missing"`
	Conflicts int64            `json:"conflicts" doc:"Transactions that the cluster has refused since that server's start"`
	Waiting   int64            `json:"waiting" doc:"Others' transactions that it has received and not applied"`
	Paused    *float64         `json:"paused" doc:"For which part of the time it was held back for the slowest server (flow control); null = it does not say"`
}

// DatabaseMember is one of the servers; what the one that answered does not know is empty.
type DatabaseMember struct {
	ID      string `json:"id" doc:"The server's id in the cluster"`
	Address string `json:"address" doc:"Where clients reach it, as it says itself"`
	State   string `json:"state" doc:"Its state, in the product's words"`
	Role    string `json:"role" doc:"writer, secondary or empty"`
	Current bool   `json:"current" doc:"This one answered"`
}

// DatabaseFinding is something that an operator should change.
type DatabaseFinding struct {
	Code    string `json:"code" doc:"Stable name of the finding"`
	Fatal   bool   `json:"fatal" doc:"A node refuses to start with it"`
	Message string `json:"message" doc:"What it means and what to do, for people"`
}

// ClusterClock says whether this node believes the database's clock.
type ClusterClock struct {
	Held   bool    `json:"held" doc:"The database's clock leapt forward and firing is held"`
	HeldAt *string `json:"heldAt" format:"date-time" doc:"The time that was believed last"`
	JumpMs int64   `json:"jumpMs" doc:"How far the database's clock leapt"`
}

// ClusterHistory says whether the database is still the one that this node knows.
type ClusterHistory struct {
	Held   bool    `json:"held" doc:"The database has lost what it had committed, and firing is held"`
	HeldAt *string `json:"heldAt" format:"date-time" doc:"When this node found out, by its own clock"`
	Reason string  `json:"reason" doc:"How it found out"`
	Epoch  string  `json:"epoch" doc:"Grows when an operator accepts a database that has lost something"`
}

// AcceptedHistory is the answer to an acceptance.
type AcceptedHistory struct {
	Epoch string `json:"epoch" doc:"The epoch that begins with it"`
}

// ClusterNode is one admin process.
type ClusterNode struct {
	ID              string       `json:"id" doc:"Id of the node in this cluster"`
	Name            string       `json:"name" doc:"Name of the node, as its settings say"`
	BootID          string       `json:"bootId" doc:"Id of the process: another one after each start"`
	Version         string       `json:"version" doc:"Version of the server"`
	State           string       `json:"state" enum:"live,leaving,silent" doc:"live; leaving: it stops and takes nothing new; silent: it has not been heard of for a while"`
	Current         bool         `json:"current" doc:"The node that answers"`
	Connected       bool         `json:"connected" doc:"Its session with the database is open"`
	StartedAt       string       `json:"startedAt" format:"date-time" doc:"When the process started"`
	RenewedAt       *string      `json:"renewedAt" format:"date-time" doc:"Its last sign of life"`
	HeartbeatAgeMs  int64        `json:"heartbeatAgeMs" doc:"Since its last sign of life"`
	ClockSkewMs     int64        `json:"clockSkewMs" doc:"Its own clock less the database's"`
	ClockHeld       bool         `json:"clockHeld" doc:"It does not believe the database's clock"`
	Sessions        *int         `json:"sessions" doc:"Executor sessions of all tenants; 0 of a node that is not heard; for administrators, others get null"`
	Partitions      int          `json:"partitions" doc:"Leases that it holds"`
	PlanningLagMs   int64        `json:"planningLagMs" doc:"The greatest of its partitions"`
	ExecutorAddress string       `json:"executorAddress" doc:"Where executors reach it; empty: it does not say, or the reader is no administrator"`
	ZoneRules       ClusterZones `json:"zoneRules" doc:"The rules of time zones that it plans with"`
}

// ClusterZones says which rules of time zones a node has.
type ClusterZones struct {
	Source  string `json:"source" doc:"Folder or zip file, or embedded; empty: the node does not say, or the reader is no administrator"`
	Version string `json:"version" doc:"What the source calls itself, such as 2026a; empty when it does not say"`
	Digest  string `json:"digest" doc:"A hash of the rules: nodes with the same one plan the same fire times"`
}

// ClusterPartition is one slice of the triggers.
type ClusterPartition struct {
	ID            int     `json:"id" doc:"Number of the partition, from 0 to 63"`
	State         string  `json:"state" enum:"held,expired,free" doc:"held: a node plans it; expired: the lease is over and nobody has taken it; free: nobody has ever had it, or it was given up"`
	NodeID        *string `json:"nodeId" doc:"The holder, or the last one"`
	NodeName      string  `json:"nodeName" doc:"Name of that node; empty without one"`
	BootID        string  `json:"bootId" doc:"Process of that node; empty without one"`
	Term          string  `json:"term" doc:"Grows with each holder"`
	Until         *string `json:"until" format:"date-time" doc:"End of the lease, by the database's clock"`
	NextFireAt    *string `json:"nextFireAt" format:"date-time" doc:"The earliest fire time of any tenant that is not planned; for administrators, others get null"`
	PlanningLagMs int64   `json:"planningLagMs" doc:"How long ago that was; 0 while planning is ahead"`
	OldestDueAt   *string `json:"oldestDueAt" format:"date-time" doc:"When the longest overdue run had to be looked at; null = nothing is overdue, or the reader is no administrator"`
	DueLagMs      int64   `json:"dueLagMs" doc:"How long ago that was"`
}

// ConfirmedClock is the answer to a confirmation.
type ConfirmedClock struct {
	ConfirmedAt string `json:"confirmedAt" format:"date-time" doc:"The database's clock, which is now believed"`
}

// nodeSilentAfter is how old a node's last sign of life is before people are told;
// it gives one every half second.
const nodeSilentAfter = 3 * time.Second

func (sys *system) registerCluster(server *web.Server) {
	sys.registerAcceptHistory(server)
	sys.registerRefusals(server)
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/cluster", ID: "get-cluster", Tag: "system",
		Summary:     "Nodes, partitions, clock and database of the engine",
		Description: "As the node that answers sees it.",
	}, sys.cluster)
	web.Register(server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/cluster/confirm-clock", ID: "confirm-clock", Tag: "system",
		Summary: "Say that the database's clock is right",
		Description: "After the database's clock leapt forward by more than 1 s, firing is held until most nodes' clocks agree with it. " +
			"This makes all nodes go on although they do not.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body ConfirmedClock }, error) {
		now, err := sys.store.ConfirmClock(ctx)
		if err != nil {
			return nil, err
		}
		sys.log.Warn("an operator confirmed the database's clock", "user", id.Name, "at", now)
		return &struct{ Body ConfirmedClock }{ConfirmedClock{web.Instant(now)}}, nil
	})
}

func (sys *system) registerAcceptHistory(server *web.Server) {
	web.Register(server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/cluster/accept-history", ID: "accept-history", Tag: "system",
		Summary: "Say that the database is right as it is, though it has lost commits",
		Description: "After a backup was put back, or a replica was promoted that lagged behind, firing is held. " +
			"This makes all nodes go on with what the database says now: fire times that it does not know to have run count as due or missed. " +
			"409 when no node has found that anything was lost.",
		Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body AcceptedHistory }, error) {
		h, err := sys.store.AcceptHistory(ctx)
		if err != nil {
			return nil, err
		}
		sys.log.Warn("an operator accepted the database as it is", "user", id.Name, "epoch", h.Epoch)
		return &struct{ Body AcceptedHistory }{AcceptedHistory{strconv.FormatInt(h.Epoch, 10)}}, nil
	})
}

func (sys *system) cluster(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Cluster }, error) {
	table, err := sys.store.ReadPartitions(ctx)
	if err != nil {
		return nil, err
	}
	lags, err := sys.store.ListPartitionLags(ctx)
	if err != nil {
		return nil, err
	}
	db, err := sys.store.DescribeDatabase(ctx)
	if err != nil {
		return nil, err
	}
	out := clusterOf(table, lags, sys.self)
	out.Database = databaseOf(db)
	if at, jump, held := sys.clockHeld(); held {
		out.Clock = ClusterClock{Held: true, HeldAt: web.InstantOrNull(at), JumpMs: jump.Milliseconds()}
	}
	out.History.Epoch = strconv.FormatInt(table.History.Epoch, 10)
	if r, held := sys.store.RolledBack(); held {
		out.History.Held, out.History.HeldAt, out.History.Reason = true, web.InstantOrNull(r.At), r.Reason()
	}
	if !id.May(domain.PermAdmin) {
		out.hide()
	}
	return &struct{ Body Cluster }{out}, nil
}

// hide leaves what concerns every tenant: whether and when runs are planned. How
// the servers are set up is for administrators, and so is what other tenants do.
func (c *Cluster) hide() {
	c.Database.Findings, c.Database.Group = []DatabaseFinding{}, nil
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Sessions, n.ExecutorAddress, n.ZoneRules.Source = nil, "", ""
	}
	for i := range c.Partitions {
		c.Partitions[i].NextFireAt, c.Partitions[i].OldestDueAt = nil, nil
	}
}

func databaseOf(d domain.Database) ClusterDatabase {
	out := ClusterDatabase{
		Kind: d.Kind, Version: d.Version, Role: d.Role, ReadOnly: d.ReadOnly,
		LatencyMs: float64(d.Latency.Microseconds()) / 1000, Findings: []DatabaseFinding{},
	}
	for _, f := range d.Findings {
		out.Findings = append(out.Findings, DatabaseFinding{Code: f.Code, Fatal: f.Fatal, Message: f.Message})
	}
	if g := d.Group; g != nil {
		out.Group = &DatabaseGroup{
			Kind: g.Kind, State: g.State, Quorum: g.Quorum, Writer: g.Writer, Members: []DatabaseMember{},
			Conflicts: g.Conflicts, Waiting: g.Waiting,
		}
		if g.Paused >= 0 {
			out.Group.Paused = &g.Paused
		}
		for _, m := range g.Members {
			out.Group.Members = append(out.Group.Members, DatabaseMember(m))
		}
	}
	return out
}

func clusterOf(t domain.PartitionTable, lags []domain.PartitionLag, self string) Cluster {
	out := Cluster{Now: web.Instant(t.Now), ZonesDiffer: t.ZonesDiffer(), Nodes: []ClusterNode{}, Partitions: make([]ClusterPartition, len(t.Leases))}
	at := map[string]int{}
	for i := range t.Nodes {
		at[t.Nodes[i].BootID] = i
		out.Nodes = append(out.Nodes, nodeOf(&t.Nodes[i], t.Now, self))
	}
	for i, l := range t.Leases {
		p := partitionOf(l, lags[i], t.Now)
		if n, ok := at[l.BootID]; ok {
			p.NodeName = t.Nodes[n].Name
			if p.State == "held" {
				out.Nodes[n].Partitions++
				out.Nodes[n].PlanningLagMs = max(out.Nodes[n].PlanningLagMs, p.PlanningLagMs)
			}
		}
		out.Partitions[i] = p
	}
	return out
}

func nodeOf(n *domain.NodeStatus, now time.Time, self string) ClusterNode {
	seen := n.RenewedAt
	state := "live"
	switch {
	case seen.IsZero():
		state, seen = "leaving", n.HeartbeatAt // or it has only begun
	case now.Sub(seen) > nodeSilentAfter:
		state = "silent"
	}
	sessions := n.Sessions
	if state == "silent" || !n.Connected {
		sessions = 0 // what it wrote last is no fact any more
	}
	return ClusterNode{
		ID: n.ID.String(), Name: n.Name, BootID: n.BootID, Version: n.Version, State: state, Current: n.BootID == self,
		Connected: n.Connected, StartedAt: web.Instant(n.StartedAt), RenewedAt: web.InstantOrNull(n.RenewedAt),
		HeartbeatAgeMs: max(0, now.Sub(seen).Milliseconds()), ClockSkewMs: n.ClockSkew.Milliseconds(), ClockHeld: n.ClockHeld,
		Sessions: &sessions, ExecutorAddress: n.ExecutorAddress, ZoneRules: ClusterZones(n.Zones),
	}
}

func partitionOf(l domain.PartitionLease, lag domain.PartitionLag, now time.Time) ClusterPartition {
	p := ClusterPartition{
		ID: l.Partition, State: "free", BootID: l.BootID, Term: strconv.FormatInt(l.Term, 10),
		Until: web.InstantOrNull(l.Until), NextFireAt: web.InstantOrNull(lag.NextFireAt),
	}
	switch {
	case l.Until.After(now):
		p.State = "held"
	case !l.Until.IsZero():
		p.State = "expired"
	}
	if l.Node != 0 {
		id := l.Node.String()
		p.NodeID = &id
	}
	if !lag.NextFireAt.IsZero() {
		p.PlanningLagMs = max(0, now.Sub(lag.NextFireAt).Milliseconds())
	}
	if !lag.OldestWakeAt.IsZero() && lag.OldestWakeAt.Before(now) {
		p.OldestDueAt, p.DueLagMs = web.InstantOrNull(lag.OldestWakeAt), now.Sub(lag.OldestWakeAt).Milliseconds()
	}
	return p
}

// maxRefusals is more than the nodes keep.
const maxRefusals = 1000

// Refusals is whom the nodes turned away.
type Refusals struct {
	Unheard int       `json:"unheard" doc:"Connections closed before their hello was complete, because there were too many"`
	Items   []Refusal `json:"items" doc:"The last one first; no more than 500 are kept, for 30 days"`
}

// Refusal is a process that was turned away, as often as for the same reason.
type Refusal struct {
	Code     string `json:"code" doc:"As the process was told: bad_token, token_expired, wrong_executor, certificate_required, bad_certificate, denied, version_unsupported, flapping, limit_reached, not_registered, malformed; or flood"`
	Message  string `json:"message" doc:"Of the last time"`
	Remote   string `json:"remote" doc:"Its address; of IPv6 the network of 64 bits; empty: several, counted together because there were too many"`
	Executor string `json:"executor" doc:"The executor that it said it belongs to; empty also for several, when an address uses too many names"`
	Instance string `json:"instance" doc:"The name that it gave, if any"`
	Node     string `json:"node" doc:"The node that turned it away last"`
	Times    int    `json:"times" doc:"How often since it was first seen"`
	FirstAt  string `json:"firstAt" format:"date-time" doc:"By the node's own clock, as lastAt"`
	LastAt   string `json:"lastAt" format:"date-time" doc:"When it was turned away last"`
}

func (sys *system) registerRefusals(server *web.Server) {
	web.Register(server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/cluster/refusals", ID: "list-refusals", Tag: "system",
		Summary: "Which executors the nodes have turned away, and why",
		Description: "What they say of themselves is not proven. Nodes write it down together, every 2 s and a bounded number each time, " +
			"so that strangers are no load for the database: while very many come, some are counted without their names or later.",
	}, func(ctx context.Context, _ auth.Identity, _ *struct{}) (*struct{ Body Refusals }, error) {
		list, err := sys.store.ListRefusals(ctx, maxRefusals)
		if err != nil {
			return nil, err
		}
		out := Refusals{Items: make([]Refusal, 0, len(list))}
		for _, r := range list {
			if r.Code == domain.RefusalUnheard {
				out.Unheard += r.Times
			} else {
				out.Items = append(out.Items, refusalOf(r))
			}
		}
		return &struct{ Body Refusals }{out}, nil
	})
}

func refusalOf(r domain.Refusal) Refusal {
	return Refusal{
		Code: r.Code, Message: r.Message, Remote: r.Remote, Executor: r.Executor, Instance: r.Instance, Node: r.Node,
		Times: r.Times, FirstAt: web.Instant(r.FirstAt), LastAt: web.Instant(r.LastAt),
	}
}
