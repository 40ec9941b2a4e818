package noun

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// locations are the fields that an error names.
func locations(t *testing.T, err error) (out []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *domain.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, domain.CodeInvalid, e.Code)
	for _, f := range e.Fields {
		out = append(out, f.Location)
	}
	return out
}

// pemPair is a certificate and its key.
func pemPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestCheckConnection(t *testing.T) {
	certificate, key := pemPair(t)
	type (
		secrets = map[string]string
		change  = func(s *ConnectionSpec, x secrets)
	)
	for _, test := range []struct {
		name   string
		broker Broker
		change change
		want   []string
	}{
		{"nobody at NATS", BrokerNATS, func(*ConnectionSpec, secrets) {}, nil},
		{"a token of NATS", BrokerNATS, func(_ *ConnectionSpec, x secrets) { x[SecretPassword] = "t" }, nil},
		{"credentials of NATS", BrokerNATS, func(s *ConnectionSpec, x secrets) {
			s.Mechanism, x[SecretPassword] = MechanismCredentials, "-----BEGIN NATS USER JWT-----\n…"
		}, nil},
		{"credentials that are none", BrokerNATS, func(s *ConnectionSpec, x secrets) {
			s.Mechanism, s.Username, x[SecretPassword] = MechanismCredentials, "u", "x"
		}, []string{"body.spec.username", "body.secrets.password"}},
		{"a user without a password", BrokerRedis, func(s *ConnectionSpec, _ secrets) { s.Username = "u" }, []string{"body.secrets.password"}},
		{"nobody at RabbitMQ", BrokerRabbitMQ, func(s *ConnectionSpec, _ secrets) { s.Username = "" }, []string{"body.spec.username"}},
		{"a password of nobody", BrokerKafka, func(_ *ConnectionSpec, x secrets) { x[SecretPassword] = "p" }, []string{"body.spec.username"}},
		{"SCRAM", BrokerKafka, func(s *ConnectionSpec, x secrets) {
			s.Mechanism, s.Username, x[SecretPassword] = MechanismScram512, "u", "p"
		}, nil},
		{"SCRAM without anything", BrokerKafka, func(s *ConnectionSpec, _ secrets) { s.Mechanism = MechanismScram256 }, []string{"body.spec.username", "body.secrets.password"}},
		{"a mechanism of another broker", BrokerRedis, func(s *ConnectionSpec, _ secrets) { s.Mechanism = MechanismExternal }, []string{"body.spec.mechanism", "body.spec.tls.certificate"}},
		{"a certificate instead of a password", BrokerRabbitMQ, func(s *ConnectionSpec, x secrets) {
			s.Mechanism, s.Username, x[SecretPassword] = MechanismExternal, "", ""
			s.TLS, x[SecretClientKey] = ConnectionTLS{Enabled: true, Authorities: certificate, Certificate: certificate}, key
		}, nil},
		{"a certificate without its key", BrokerRedis, func(s *ConnectionSpec, _ secrets) {
			s.TLS = ConnectionTLS{Enabled: true, Certificate: certificate}
		}, []string{"body.secrets.clientKey"}},
		{"no PEM", BrokerRedis, func(s *ConnectionSpec, x secrets) {
			s.TLS, x[SecretClientKey] = ConnectionTLS{Enabled: true, Authorities: "x", Certificate: key}, certificate
		}, []string{"body.spec.tls.authorities", "body.spec.tls.certificate", "body.secrets.clientKey"}},
		{"TLS that is off", BrokerRedis, func(s *ConnectionSpec, _ secrets) { s.TLS.ServerName = "x" }, []string{"body.spec.tls.enabled"}},
		{"no address", BrokerRedis, func(s *ConnectionSpec, _ secrets) { s.Addresses = nil }, []string{"body.spec.addresses"}},
		{"bad addresses", BrokerRedis, func(s *ConnectionSpec, _ secrets) {
			s.Addresses = []string{"[::1]:1", "redis://x:1", "x", ":1", "u@x:1", "x:0", "x:65536", "x:y", "x:1/2"}
		}, []string{"body.spec.addresses[1]", "body.spec.addresses[2]", "body.spec.addresses[3]", "body.spec.addresses[4]", "body.spec.addresses[5]", "body.spec.addresses[6]", "body.spec.addresses[7]", "body.spec.addresses[8]"}},
		{"a database", BrokerRedis, func(s *ConnectionSpec, _ secrets) { s.Database, s.SentinelMaster = 3, "main" }, nil},
		{"a database of a cluster", BrokerRedis, func(s *ConnectionSpec, _ secrets) {
			s.Database, s.Addresses = 3, []string{"a:1", "b:1"}
		}, []string{"body.spec.database"}},
		{"settings of others", BrokerNATS, func(s *ConnectionSpec, _ secrets) {
			s.Database, s.SentinelMaster, s.VirtualHost = 3, "main", "/"
		}, []string{"body.spec.virtualHost", "body.spec.database", "body.spec.sentinelMaster"}},
		{"an unknown broker", "activemq", func(*ConnectionSpec, secrets) {}, []string{"body.spec.broker"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := resource.Draft[ConnectionSpec]{Spec: ConnectionSpec{Broker: test.broker, Addresses: []string{"broker.example:1"}, Mechanism: MechanismPassword}, Secrets: secrets{}}
			if test.broker == BrokerRabbitMQ {
				d.Spec.VirtualHost, d.Spec.Username, d.Secrets[SecretPassword] = "/", "u", "p"
			}
			test.change(&d.Spec, d.Secrets)
			var c domain.Checker
			CheckConnection(&d, &c)
			require.Equal(t, test.want, locations(t, c.Err()))
		})
	}
}

// Whoever may edit a connection must not get its password sent elsewhere.
func TestSameReceiver(t *testing.T) {
	old := ConnectionSpec{Broker: BrokerKafka, Addresses: []string{"a:1"}, Username: "u", Mechanism: MechanismScram512, TLS: ConnectionTLS{Enabled: true, Authorities: "A"}}
	for name, change := range map[string]func(s *ConnectionSpec){
		"address":     func(s *ConnectionSpec) { s.Addresses = []string{"a:1", "thief:1"} },
		"no TLS":      func(s *ConnectionSpec) { s.TLS.Enabled = false },
		"authorities": func(s *ConnectionSpec) { s.TLS.Authorities = "mine" },
		"server name": func(s *ConnectionSpec) { s.TLS.ServerName = "thief" },
		"sentinel":    func(s *ConnectionSpec) { s.SentinelMaster = "thief" },
		"mechanism":   func(s *ConnectionSpec) { s.Mechanism = MechanismPassword },
	} {
		changed := old
		change(&changed)
		require.False(t, changed.SameReceiver(&old), name)
	}
	renamed := old
	renamed.Description, renamed.Username = "x", "v"
	require.True(t, renamed.SameReceiver(&old))
}

func TestCheckMessage(t *testing.T) {
	for _, test := range []struct {
		name   string
		broker Broker
		change func(m *Message)
		want   []string
	}{
		{"NATS", BrokerNATS, func(m *Message) { m.Target = MessageTarget{Subject: "a.b", Stream: "S"} }, nil},
		{"wildcards", BrokerNATS, func(m *Message) { m.Target = MessageTarget{Subject: "a.*", Stream: "a.b"} }, []string{"body.target.subject", "body.target.stream"}},
		{"the broker's own subjects", BrokerNATS, func(m *Message) { m.Target.Subject = "$JS.API.STREAM.DELETE.S" }, []string{"body.target.subject"}},
		{"an empty token", BrokerNATS, func(m *Message) { m.Target.Subject = "a..b" }, []string{"body.target.subject"}},
		{"an exchange", BrokerRabbitMQ, func(m *Message) { m.Target = MessageTarget{Exchange: "e"} }, nil},
		{"a queue", BrokerRabbitMQ, func(m *Message) { m.Target = MessageTarget{RoutingKey: "q"} }, nil},
		{"neither", BrokerRabbitMQ, func(*Message) {}, []string{"body.target.routingKey"}},
		{"Kafka", BrokerKafka, func(m *Message) { m.Target = MessageTarget{Topic: "a.b-c_D1", PartitionKey: "键"} }, nil},
		{"no topic", BrokerKafka, func(m *Message) { m.Target.Topic = "a b" }, []string{"body.target.topic"}},
		{"Redis", BrokerRedis, func(m *Message) { m.Target = MessageTarget{Stream: "orders:{7}:x", MaxLength: 9, Create: true} }, nil},
		{"half a hash tag", BrokerRedis, func(m *Message) { m.Target.Stream = "a}b" }, []string{"body.target.stream"}},
		{"an empty hash tag", BrokerRedis, func(m *Message) { m.Target.Stream = "a{}b" }, []string{"body.target.stream"}},
		{"two hash tags", BrokerRedis, func(m *Message) { m.Target.Stream = "{a}{b}" }, []string{"body.target.stream"}},
		{"a closing brace before", BrokerRedis, func(m *Message) { m.Target.Stream = "}{a}" }, []string{"body.target.stream"}},
		{"another broker's target", BrokerRedis, func(m *Message) { m.Target = MessageTarget{Stream: "s", Topic: "t"} }, []string{"body.target"}},
		{"no id", BrokerKafka, func(m *Message) { m.Target.Topic, m.ID = "t", "" }, []string{"body.id"}},
		{"too long", BrokerKafka, func(m *Message) { m.Target.Topic, m.Body = "t", make([]byte, MaxMessageBody+1) }, []string{"body.body"}},
		{"headers", BrokerKafka, func(m *Message) { m.Target.Topic, m.Headers = "t", map[string]string{"X-Region": "Zürich"} }, nil},
		{"a header that purges the stream", BrokerNATS, func(m *Message) {
			m.Target.Subject, m.Headers = "a", map[string]string{"nats-rollup": "all"}
		}, []string{"body.headers"}},
		{"a header of ours", BrokerKafka, func(m *Message) { m.Target.Topic, m.Headers = "t", map[string]string{"carillon-run-id": "1"} }, []string{"body.headers"}},
		{"a header in two lines", BrokerNATS, func(m *Message) {
			m.Target.Subject, m.Headers = "a", map[string]string{"X": "1\r\nNats-Rollup: all"}
		}, []string{"body.headers.X"}},
		{"a header's name in two lines", BrokerNATS, func(m *Message) {
			m.Target.Subject, m.Headers = "a", map[string]string{"X: 1\r\nNats-Rollup": "all"}
		}, []string{"body.headers"}},
		{"a key in two lines", BrokerNATS, func(m *Message) {
			m.Target.Subject, m.Key = "a", "1\r\nNats-Rollup: all"
		}, []string{"body.key"}},
		{"a long header", BrokerKafka, func(m *Message) {
			m.Target.Topic, m.Headers = "t", map[string]string{"X": strings.Repeat("x", 4097)}
		}, []string{"body.headers.X"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Message{ID: "1"}
			test.change(&m)
			require.Equal(t, test.want, locations(t, CheckMessage(test.broker, &m)))
		})
	}
}
