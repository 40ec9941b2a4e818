package noun

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Delivery is one telling on one channel to one target: of an incident, of which
// EventID is the newest event, or of an event that belongs to none.
type Delivery struct {
	ID       int64
	TenantID domain.TenantID
	EventID  int64
	Event    domain.AlertEvent
	Incident domain.IncidentID
	// Job is whose settings name the target; 0 = no job's.
	Job     domain.JobID
	Channel string // a ChannelKind
	// ChannelID is the tenant's alert channel that it goes through; 0: to an
	// address of the job, or of the operators.
	ChannelID domain.ChannelID
	Target    string // address or URL; of an alert channel its name, or an address of it
	State     DeliveryState
	Attempts  int
	// NextAt is when it is tried (again).
	NextAt      time.Time
	LastError   string
	CreatedAt   time.Time
	DeliveredAt time.Time
}

type DeliveryState uint8

const (
	DeliveryPending   DeliveryState = 1
	DeliveryDelivered DeliveryState = 2
	DeliveryFailed    DeliveryState = 3 // given up
)

func (s DeliveryState) String() string {
	switch s {
	case DeliveryPending:
		return "pending"
	case DeliveryDelivered:
		return "delivered"
	default:
		return "failed"
	}
}
