package publish

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/wire"
)

// kafka publishes to Kafka. Its client opens and mends its connections itself.
type kafka struct {
	client   *kgo.Client
	endpoint *endpoint // the client would try for ever after it was refused or cut
}

func openKafka(ctx context.Context, e *endpoint) (broker, error) {
	client, err := kgo.NewClient(append(kafkaLogin(e),
		kgo.ClientID("carillon"), kgo.DisableClientMetrics(),
		// The producer is idempotent by default: what the client sends again
		// itself is there once. A message that is given up is taken back from
		// the client's memory though; its next try is another record, and the
		// consumer keeps one by its id.
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.AllowIdempotentProduceCancellation(),
		kgo.ProducerLinger(0), kgo.MaxBufferedRecords(10_000), kgo.MaxBufferedBytes(64<<20),
		// A topic that was just made may be unknown to a broker for a moment.
		kgo.UnknownTopicRetries(3), kgo.MetadataMinAge(500*time.Millisecond),
		kgo.RequestTimeoutOverhead(writeTimeout), kgo.RequestRetries(3), kgo.RetryTimeout(dialTimeout),
	)...)
	if err != nil {
		return nil, permanent("Kafka: %w", err)
	}
	// Else a wrong password would show in no message, which waits for brokers.
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, kafkaError(err)
	}
	return &kafka{client, e}, nil
}

// kafkaLogin says where the brokers are, and who asks.
func kafkaLogin(e *endpoint) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(e.spec.Addresses...), kgo.Dialer(e.read(wire.Kafka)), kgo.BrokerMaxReadBytes(1 << 20), kgo.FetchMaxBytes(1 << 20)}
	user, password := e.spec.Username, e.secrets[noun.SecretPassword]
	switch {
	case e.spec.Mechanism == noun.MechanismScram256:
		options = append(options, kgo.SASL(boundedScram{scram.Auth{User: user, Pass: password}.AsSha256Mechanism()}))
	case e.spec.Mechanism == noun.MechanismScram512:
		options = append(options, kgo.SASL(boundedScram{scram.Auth{User: user, Pass: password}.AsSha512Mechanism()}))
	case user != "":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	}
	return options
}

// maxIterations bounds the work of a login, which the broker announces (RFC 5802).
// Kafka's default is 4,096. The library computes 2,000,000,000 for half an hour.
const maxIterations = 200_000

// boundedScram refuses more.
type boundedScram struct{ sasl.Mechanism }

func (m boundedScram) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := m.Mechanism.Authenticate(ctx, host)
	return boundedSession{session}, first, err
}

type boundedSession struct{ sasl.Session }

func (s boundedSession) Challenge(answer []byte) (bool, []byte, error) {
	for field := range bytes.SplitSeq(answer, []byte(",")) {
		digits, ok := bytes.CutPrefix(field, []byte("i="))
		if n, err := strconv.Atoi(string(digits)); ok && (err != nil || n > maxIterations) {
			return false, nil, permanent("Kafka: the broker asks for %q iterations of SCRAM, and may ask for 4096 to %d", digits[:min(len(digits), 20)], maxIterations)
		}
	}
	return s.Session.Challenge(answer)
}

func (b *kafka) publish(ctx context.Context, m *noun.Message) error {
	record := &kgo.Record{Topic: m.Target.Topic, Value: m.Body, Headers: []kgo.RecordHeader{{Key: "Content-Type", Value: []byte(m.ContentType)}}}
	for _, h := range m.AllHeaders() {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	if key := m.Target.PartitionKey; key != "" {
		record.Key = []byte(key)
	} else if m.Key != "" {
		record.Key = []byte(m.Key)
	}
	done := make(chan error, 1)
	b.client.Produce(ctx, record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return kafkaError(err)
	case <-b.endpoint.refused:
		return errors.New("a broker of the cluster has such an address")
	case <-b.endpoint.ended:
		return b.endpoint.cause
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kafkaError sorts out what the brokers say. The library's own judgement is of
// requests: to it a topic that is missing may still come.
func kafkaError(err error) error {
	var said *kerr.Error
	switch {
	case err == nil || !errors.As(err, &said):
		return err
	case errors.Is(said, kerr.UnknownTopicOrPartition), errors.Is(said, kerr.UnknownTopicID), !said.Retriable && !producerState(said):
		return permanent("Kafka: %w", said)
	default:
		return retryable("Kafka: %w", err)
	}
}

// producerState: the brokers and the idempotent producer disagree, which the
// client mends before its next record.
func producerState(said *kerr.Error) bool {
	for _, state := range []error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.UnknownServerError} {
		if errors.Is(said, state) {
			return true
		}
	}
	return false
}

func (b *kafka) broken() bool { return false }
func (b *kafka) close()       { b.client.Close() }
