package client

import (
	"context"
	"net/http"
	"time"
)

// Cluster is the engine at a glance.
type Cluster struct {
	Now         time.Time `json:"now"`
	ZonesDiffer bool      `json:"zonesDiffer"`
	Database    struct {
		Kind      string  `json:"kind"`
		Version   string  `json:"version"`
		Role      string  `json:"role"`
		ReadOnly  bool    `json:"readOnly"`
		LatencyMs float64 `json:"latencyMs"`
		Findings  []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"findings"`
	} `json:"database"`
	Clock struct {
		Held   bool       `json:"held"`
		HeldAt *time.Time `json:"heldAt"`
		JumpMs int64      `json:"jumpMs"`
	} `json:"clock"`
	History struct {
		Held   bool       `json:"held"`
		HeldAt *time.Time `json:"heldAt"`
		Reason string     `json:"reason"`
		Epoch  string     `json:"epoch"`
	} `json:"history"`
	Nodes      []ClusterNode      `json:"nodes"`
	Partitions []ClusterPartition `json:"partitions"`
}

// ClusterNode is one admin process.
type ClusterNode struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	BootID          string    `json:"bootId"`
	Version         string    `json:"version"`
	State           string    `json:"state"`
	Connected       bool      `json:"connected"`
	StartedAt       time.Time `json:"startedAt"`
	HeartbeatAgeMs  int64     `json:"heartbeatAgeMs"`
	ClockSkewMs     int64     `json:"clockSkewMs"`
	ClockHeld       bool      `json:"clockHeld"`
	Sessions        int       `json:"sessions"`
	Partitions      int       `json:"partitions"`
	PlanningLagMs   int64     `json:"planningLagMs"`
	ExecutorAddress string    `json:"executorAddress"`
	ZoneRules       struct {
		Source  string `json:"source"`
		Version string `json:"version"`
		Digest  string `json:"digest"`
	} `json:"zoneRules"`
}

// ClusterPartition is one slice of the triggers.
type ClusterPartition struct {
	ID            int        `json:"id"`
	State         string     `json:"state"`
	NodeName      string     `json:"nodeName"`
	BootID        string     `json:"bootId"`
	Term          string     `json:"term"`
	Until         *time.Time `json:"until"`
	NextFireAt    *time.Time `json:"nextFireAt"`
	PlanningLagMs int64      `json:"planningLagMs"`
	DueLagMs      int64      `json:"dueLagMs"`
}

// Cluster asks for nodes, partitions, clock and database.
func (c *Client) Cluster(ctx context.Context) (d Doc[Cluster], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/cluster"}, &d)
	return d, err
}

// ConfirmedClock is the time of the database that is now believed.
type ConfirmedClock struct {
	ConfirmedAt time.Time `json:"confirmedAt"`
}

// ConfirmClock says that the database's clock is right.
func (c *Client) ConfirmClock(ctx context.Context) (d Doc[ConfirmedClock], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/cluster/confirm-clock"}, &d)
	return d, err
}

// AcceptedHistory is the epoch that begins when a database is accepted as it is.
type AcceptedHistory struct {
	Epoch string `json:"epoch"`
}

// AcceptHistory says that the database is right though it has lost commits.
func (c *Client) AcceptHistory(ctx context.Context) (d Doc[AcceptedHistory], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/cluster/accept-history"}, &d)
	return d, err
}
