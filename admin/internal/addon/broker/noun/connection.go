// Package noun answers: what is a connection, what is a message, and which are allowed?
package noun

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ConnectionID is the id of a connection.
type ConnectionID int64

func (id ConnectionID) String() string { return strconv.FormatInt(int64(id), 10) }

// Broker is a product that messages are published to.
type Broker string

// The brokers.
const (
	BrokerNATS     Broker = "nats" // JetStream
	BrokerRabbitMQ Broker = "rabbitmq"
	BrokerKafka    Broker = "kafka"
	BrokerRedis    Broker = "redis" // Streams
)

// Brokers are all of them.
var Brokers = []Broker{BrokerNATS, BrokerRabbitMQ, BrokerKafka, BrokerRedis}

// Mechanisms by which a connection says who it is. Not all brokers know all.
const (
	// MechanismPassword sends user name and password; without a user name the
	// password is NATS's token, or that of Redis's default user. Without both,
	// nothing is sent.
	MechanismPassword = "password"
	// MechanismCredentials: the password is the text of a NATS credentials file.
	MechanismCredentials = "credentials"
	// Kafka's, instead of PLAIN, which MechanismPassword is there.
	MechanismScram256 = "scram_sha_256"
	MechanismScram512 = "scram_sha_512"
	// MechanismExternal: the client's certificate says who it is, to RabbitMQ.
	MechanismExternal = "external"
)

// Mechanisms are those that a broker knows, its default first.
func (b Broker) Mechanisms() []string {
	switch b {
	case BrokerNATS:
		return []string{MechanismPassword, MechanismCredentials}
	case BrokerRabbitMQ:
		return []string{MechanismPassword, MechanismExternal}
	case BrokerKafka:
		return []string{MechanismPassword, MechanismScram256, MechanismScram512}
	default:
		return []string{MechanismPassword}
	}
}

// Bounds of connections.
const (
	// MaxConnections is how many a tenant may have.
	MaxConnections         = 64
	MaxConnectionAddresses = 16
	maxPEM                 = 32 << 10
	maxPassword            = 8 << 10 // a credentials file has 1 KiB
)

// Connection says how messages of a tenant reach a broker: where it is, and
// who asks there.
type Connection struct {
	ID       ConnectionID
	TenantID domain.TenantID
	// Version grows by one with each edit.
	Version int64
	Spec    ConnectionSpec
	// Secrets are sealed ConnectionSecrets; empty: it has none.
	Secrets []byte
	// HasPassword and HasClientKey say what is in there, without opening it.
	HasPassword, HasClientKey bool
	CreatedAt, UpdatedAt      time.Time
	CreatedBy, UpdatedBy      string
}

// ConnectionSpec is what anybody may read who may read the tenant.
type ConnectionSpec struct {
	Name        string
	Description string
	Broker      Broker // fixed: another broker is another connection
	// Addresses are host:port. Several are those of one cluster.
	Addresses []string
	Username  string
	Mechanism string // empty = the first of Broker.Mechanisms
	TLS       ConnectionTLS
	// VirtualHost is RabbitMQ's; empty = "/".
	VirtualHost string
	// Database is the number of Redis's.
	Database int
	// SentinelMaster makes the addresses those of Redis Sentinel, which are
	// asked for the master of this name.
	SentinelMaster string
}

// ConnectionTLS says how the broker proves who it is.
type ConnectionTLS struct {
	Enabled bool
	// Authorities are certificates in PEM; empty = those that the system trusts.
	Authorities string
	// ServerName is the name in the broker's certificate; empty = the host of
	// the address.
	ServerName string
	// Certificate is the client's, in PEM; empty = none. Its key is a secret.
	Certificate string
}

// ConnectionSecrets are kept sealed.
type ConnectionSecrets struct {
	Password  string `json:"password,omitempty"`
	ClientKey string `json:"clientKey,omitempty"` // PEM
}

// SameReceiver tells whether secrets that were given for old may be sent where
// the connection leads now. Who could redirect them without knowing them would
// get to know them.
func (s *ConnectionSpec) SameReceiver(old *ConnectionSpec) bool {
	return slices.Equal(s.Addresses, old.Addresses) && s.TLS.Enabled == old.TLS.Enabled && s.TLS.Authorities == old.TLS.Authorities &&
		s.TLS.ServerName == old.TLS.ServerName && s.SentinelMaster == old.SentinelMaster && s.Mechanism == old.Mechanism
}

// CheckConnection validates a connection. Whether its addresses may be reached
// shows when they are dialled.
func CheckConnection(s *ConnectionSpec, secrets *ConnectionSecrets) error {
	var c checker
	c.Check(s.Name != "" && len(s.Name) <= domain.MaxNameLength && !domain.HasControl(s.Name), "body.name", s.Name, "must have 1 to 128 bytes in one line")
	c.Check(len(s.Description) <= 4096, "body.description", nil, "must not exceed 4096 bytes")
	c.Check(slices.Contains(Brokers, s.Broker), "body.broker", s.Broker, "must be nats, rabbitmq, kafka or redis")
	c.Check(len(s.Addresses) > 0 && len(s.Addresses) <= MaxConnectionAddresses, "body.addresses", nil, "must be 1 to 16, each as host:port")
	for i, address := range s.Addresses {
		c.Check(isHostPort(address), "body.addresses["+strconv.Itoa(i)+"]", address, "must be host:port, without a scheme or a user")
	}
	c.Check(s.Broker != BrokerRabbitMQ || s.VirtualHost != "" && len(s.VirtualHost) <= 127 && !domain.HasControl(s.VirtualHost), "body.virtualHost", s.VirtualHost, "must have 1 to 127 bytes")
	c.Check(s.Broker == BrokerRabbitMQ || s.VirtualHost == "", "body.virtualHost", s.VirtualHost, "is for RabbitMQ")
	c.Check(s.Database >= 0 && s.Database <= 1<<16, "body.database", s.Database, "must be from 0 to 65536")
	c.Check(s.Database == 0 || s.Broker == BrokerRedis, "body.database", s.Database, "is for Redis")
	c.Check(s.Database == 0 || len(s.Addresses) < 2 || s.SentinelMaster != "", "body.database", s.Database, "must be 0 for a cluster: several addresses are one")
	c.Check(s.SentinelMaster == "" || s.Broker == BrokerRedis, "body.sentinelMaster", s.SentinelMaster, "is for Redis")
	c.Check(len(s.SentinelMaster) <= domain.MaxNameLength && !domain.HasControl(s.SentinelMaster), "body.sentinelMaster", s.SentinelMaster, "must have at most 128 bytes in one line")
	c.login(s, secrets)
	c.tls(&s.TLS, secrets)
	return c.Err()
}

// checker collects the wrong fields of a connection or a message.
type checker struct{ domain.Checker }

func (c *checker) login(s *ConnectionSpec, secrets *ConnectionSecrets) {
	c.Check(slices.Contains(s.Broker.Mechanisms(), s.Mechanism), "body.mechanism", s.Mechanism, "must be "+strings.Join(s.Broker.Mechanisms(), " or ")+" for this broker")
	c.Check(len(s.Username) <= 256 && !domain.HasControl(s.Username), "body.username", s.Username, "must have at most 256 bytes in one line")
	c.Check(len(secrets.Password) <= maxPassword, "body.password", nil, "must not exceed 8192 bytes")
	switch s.Mechanism {
	case MechanismPassword:
		c.Check(s.Username == "" || secrets.Password != "", "body.password", nil, "is needed beside a username")
		c.Check(s.Username != "" || secrets.Password == "" || s.Broker != BrokerKafka, "body.username", nil, "is needed beside a password")
		c.Check(s.Username != "" || s.Broker != BrokerRabbitMQ, "body.username", nil, "is needed: RabbitMQ lets nobody in without one")
	case MechanismScram256, MechanismScram512:
		c.Check(s.Username != "", "body.username", nil, "is needed for "+s.Mechanism)
		c.Check(secrets.Password != "", "body.password", nil, "is needed for "+s.Mechanism)
	case MechanismCredentials:
		c.Check(s.Username == "", "body.username", s.Username, "must be left out: the credentials name the user")
		c.Check(strings.Contains(secrets.Password, "-----BEGIN NATS USER JWT-----"), "body.password", nil, "must be the text of a credentials file")
	case MechanismExternal:
		c.Check(s.TLS.Certificate != "", "body.tls.certificate", nil, "is needed: it says who the client is")
		c.Check(secrets.Password == "" && s.Username == "", "body.password", nil, "must be left out, as username: the certificate says who the client is")
	}
}

func (c *checker) tls(t *ConnectionTLS, secrets *ConnectionSecrets) {
	c.Check(len(t.ServerName) <= 253 && !domain.HasControl(t.ServerName), "body.tls.serverName", t.ServerName, "must be a host's name")
	c.Check(t.Authorities == "" || isCertificates(t.Authorities), "body.tls.authorities", nil, "must be certificates in PEM, at most 32 KiB")
	c.Check(t.Certificate == "" || isCertificates(t.Certificate), "body.tls.certificate", nil, "must be certificates in PEM, at most 32 KiB")
	c.Check((t.Certificate == "") == (secrets.ClientKey == ""), "body.clientKey", nil, "and tls.certificate are given together or not at all")
	block, _ := pem.Decode([]byte(secrets.ClientKey))
	c.Check(secrets.ClientKey == "" || len(secrets.ClientKey) <= maxPEM && block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY"), "body.clientKey", nil, "must be a private key in PEM, without a passphrase")
	alone := *t == ConnectionTLS{}
	c.Check(t.Enabled || alone && secrets.ClientKey == "", "body.tls.enabled", t.Enabled, "must be true where anything else of TLS is set")
}

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || len(host) > 253 || domain.HasControl(host) || strings.ContainsAny(host, "/@?# ") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func isCertificates(text string) bool {
	rest := []byte(text)
	if len(rest) > maxPEM {
		return false
	}
	for n := 0; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return n > 0 && strings.TrimSpace(string(rest)) == ""
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return false
		}
	}
}
