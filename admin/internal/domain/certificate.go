package domain

import "time"

// ExecutorIdentity is who a certificate belongs to: one process of an executor.
type ExecutorIdentity struct {
	Tenant   TenantID
	Executor ExecutorID
	BootID   string
	Serial   string    // of the certificate, in hexadecimal
	Until    time.Time // when it ends
	NoJobs   bool      // as of the join token that it was given for
}

// JoinClaim is what a process says of itself that shows a join token.
type JoinClaim struct {
	Secret   string // the token
	BootID   string
	Executor string // the name
}

// JoinVerdict is the answer to one claim. Err has CodeUnauthenticated: not valid;
// CodeDenied: another executor's; or CodeTokenExpired: its time is over.
type JoinVerdict struct {
	Tenant   TenantID
	Executor ExecutorID
	NoJobs   bool // as of the token
	Err      error
}

// Authority signs executors' certificates. All nodes share it.
type Authority struct {
	ID    int64
	Epoch int // 1 for the first, one more for each successor
	// Certificate is DER; SealedKey is the private key (PKCS #8), sealed.
	Certificate []byte
	SealedKey   []byte
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// DenialKind says what a denial names.
type DenialKind string

const (
	DenyInstance    DenialKind = "instance"    // Subject is a boot id
	DenyCertificate DenialKind = "certificate" // Subject is a serial number
)

// Denial keeps a process or a certificate out, whatever it shows.
type Denial struct {
	ID        int64
	TenantID  TenantID
	Executor  ExecutorID
	Kind      DenialKind
	Subject   string
	Label     string // what people call it: the instance's name
	Reason    string
	CreatedBy string
	CreatedAt time.Time
}

// Names reports whether it is this process or certificate that is kept out.
func (d Denial) Names(who ExecutorIdentity) bool {
	if d.TenantID != who.Tenant || d.Executor != who.Executor {
		return false
	}
	switch d.Kind {
	case DenyInstance:
		return d.Subject == who.BootID
	case DenyCertificate:
		return who.Serial != "" && d.Subject == who.Serial
	}
	return false
}
