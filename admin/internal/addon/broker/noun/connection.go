// Package noun answers: what is a connection, what is a message, and which are allowed?
package noun

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

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

// Connection says how messages of a tenant reach a broker: its address and its log-in.
type Connection = resource.Document[ConnectionSpec]

// ConnectionSpec is a connection without its secrets.
type ConnectionSpec struct {
	Description    string        `json:"description,omitempty" maxLength:"4096" doc:"Purpose of the connection, for people"`
	Broker         Broker        `json:"broker" enum:"nats,rabbitmq,kafka,redis" doc:"The product: NATS JetStream, RabbitMQ, Kafka or Redis Streams; fixed"`
	Addresses      []string      `json:"addresses" minItems:"1" maxItems:"16" doc:"host:port. Several addresses are those of one cluster. Private networks only as the operator allows (connection-allow)"`
	Username       string        `json:"username,omitempty" maxLength:"256" doc:"Name for the log-in; default: none"`
	Mechanism      string        `json:"mechanism,omitempty" enum:"password,credentials,scram_sha_256,scram_sha_512,external" doc:"How it logs in. password (the default): for all brokers, without a username a token of NATS. credentials: the password is the text of a NATS credentials file. scram: Kafka. external: RabbitMQ, by the certificate"`
	TLS            ConnectionTLS `json:"tls,omitzero" doc:"Default: without TLS"`
	VirtualHost    string        `json:"virtualHost,omitempty" maxLength:"127" doc:"Virtual host of RabbitMQ; default /"`
	Database       int           `json:"database,omitempty" minimum:"0" maximum:"65536" doc:"Number of the database of Redis; default 0"`
	SentinelMaster string        `json:"sentinelMaster,omitempty" maxLength:"128" doc:"Redis: the addresses are those of Sentinel, which knows the master by this name"`
}

// ConnectionTLS says how the broker proves its identity.
type ConnectionTLS struct {
	Enabled     bool   `json:"enabled,omitempty" doc:"Default false"`
	Authorities string `json:"authorities,omitempty" maxLength:"32768" doc:"Certificates in PEM that may sign the broker's certificate; default: those that the node's system trusts"`
	ServerName  string `json:"serverName,omitempty" maxLength:"253" doc:"Name in the broker's certificate; default: the host of the address"`
	Certificate string `json:"certificate,omitempty" maxLength:"32768" doc:"The client's own certificate, in PEM. Its key is the secret clientKey"`
}

// Names of the secrets of a connection.
const (
	SecretPassword  = "password"
	SecretClientKey = "clientKey" // PEM
)

// Complete fills in defaults and removes spaces.
func (s *ConnectionSpec) Complete() {
	s.Description = strings.TrimSpace(s.Description)
	s.Mechanism = cmp.Or(s.Mechanism, MechanismPassword)
	if s.Broker == BrokerRabbitMQ {
		s.VirtualHost = cmp.Or(s.VirtualHost, "/")
	}
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
func CheckConnection(d *resource.Draft[ConnectionSpec], checks *domain.Checker) {
	c, s := checker{checks}, &d.Spec
	c.Check(d.Old == nil || d.Old.Spec.Broker == s.Broker, "body.spec.broker", s.Broker, "is fixed: make another connection")
	c.Check(len(s.Description) <= 4096, "body.spec.description", nil, "must not exceed 4096 bytes")
	c.Check(slices.Contains(Brokers, s.Broker), "body.spec.broker", s.Broker, "must be nats, rabbitmq, kafka or redis")
	c.Check(len(s.Addresses) > 0 && len(s.Addresses) <= MaxConnectionAddresses, "body.spec.addresses", nil, "must be 1 to 16, each as host:port")
	for i, address := range s.Addresses {
		c.Check(isHostPort(address), "body.spec.addresses["+strconv.Itoa(i)+"]", address, "must be host:port, without a scheme or a user")
	}
	c.Check(s.Broker != BrokerRabbitMQ || s.VirtualHost != "" && len(s.VirtualHost) <= 127 && !domain.HasControl(s.VirtualHost), "body.spec.virtualHost", s.VirtualHost, "must have 1 to 127 bytes")
	c.Check(s.Broker == BrokerRabbitMQ || s.VirtualHost == "", "body.spec.virtualHost", s.VirtualHost, "is for RabbitMQ")
	c.Check(s.Database >= 0 && s.Database <= 1<<16, "body.spec.database", s.Database, "must be from 0 to 65536")
	c.Check(s.Database == 0 || s.Broker == BrokerRedis, "body.spec.database", s.Database, "is for Redis")
	c.Check(s.Database == 0 || len(s.Addresses) < 2 || s.SentinelMaster != "", "body.spec.database", s.Database, "must be 0 for a cluster: several addresses are one")
	c.Check(s.SentinelMaster == "" || s.Broker == BrokerRedis, "body.spec.sentinelMaster", s.SentinelMaster, "is for Redis")
	c.Check(len(s.SentinelMaster) <= domain.MaxNameLength && !domain.HasControl(s.SentinelMaster), "body.spec.sentinelMaster", s.SentinelMaster, "must have at most 128 bytes in one line")
	c.login(s, d.Secrets[SecretPassword])
	c.tls(&s.TLS, d.Secrets[SecretClientKey])
}

// checker collects the wrong fields of a connection or a message.
type checker struct{ *domain.Checker }

func (c checker) login(s *ConnectionSpec, password string) {
	c.Check(slices.Contains(s.Broker.Mechanisms(), s.Mechanism), "body.spec.mechanism", s.Mechanism, "must be "+strings.Join(s.Broker.Mechanisms(), " or ")+" for this broker")
	c.Check(len(s.Username) <= 256 && !domain.HasControl(s.Username), "body.spec.username", s.Username, "must have at most 256 bytes in one line")
	c.Check(len(password) <= maxPassword, "body.secrets.password", nil, "must not exceed 8192 bytes")
	switch s.Mechanism {
	case MechanismPassword:
		c.Check(s.Username == "" || password != "", "body.secrets.password", nil, "is needed beside a username")
		c.Check(s.Username != "" || password == "" || s.Broker != BrokerKafka, "body.spec.username", nil, "is needed beside a password")
		c.Check(s.Username != "" || s.Broker != BrokerRabbitMQ, "body.spec.username", nil, "is needed: RabbitMQ lets nobody in without one")
	case MechanismScram256, MechanismScram512:
		c.Check(s.Username != "", "body.spec.username", nil, "is needed for "+s.Mechanism)
		c.Check(password != "", "body.secrets.password", nil, "is needed for "+s.Mechanism)
	case MechanismCredentials:
		c.Check(s.Username == "", "body.spec.username", s.Username, "must be left out: the credentials name the user")
		c.Check(strings.Contains(password, "-----BEGIN NATS USER JWT-----"), "body.secrets.password", nil, "must be the text of a credentials file")
	case MechanismExternal:
		c.Check(s.TLS.Certificate != "", "body.spec.tls.certificate", nil, "is needed: it says who the client is")
		c.Check(password == "" && s.Username == "", "body.secrets.password", nil, "must be left out, as username: the certificate says who the client is")
	}
}

func (c checker) tls(t *ConnectionTLS, clientKey string) {
	c.Check(len(t.ServerName) <= 253 && !domain.HasControl(t.ServerName), "body.spec.tls.serverName", t.ServerName, "must be a host's name")
	c.Check(t.Authorities == "" || isCertificates(t.Authorities), "body.spec.tls.authorities", nil, "must be certificates in PEM, at most 32 KiB")
	c.Check(t.Certificate == "" || isCertificates(t.Certificate), "body.spec.tls.certificate", nil, "must be certificates in PEM, at most 32 KiB")
	c.Check((t.Certificate == "") == (clientKey == ""), "body.secrets.clientKey", nil, "and tls.certificate are given together or not at all")
	block, _ := pem.Decode([]byte(clientKey))
	c.Check(clientKey == "" || len(clientKey) <= maxPEM && block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY"), "body.secrets.clientKey", nil, "must be a private key in PEM, without a passphrase")
	alone := *t == ConnectionTLS{}
	c.Check(t.Enabled || alone && clientKey == "", "body.spec.tls.enabled", t.Enabled, "must be true where anything else of TLS is set")
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
