package proto_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

func spec(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("SPEC.md")
	require.NoError(t, err)
	return string(text)
}

// The specification states the constants that the code has.
func TestSpecStatesTheConstants(t *testing.T) {
	text := spec(t)
	for name, value := range map[string]any{
		"MaxHello": proto.MaxHello, "MaxFrame": proto.MaxFrame, "MaxInput": proto.MaxInput,
		"MaxOutput": proto.MaxOutput, "MaxScript": proto.MaxScript, "MaxErrorText": proto.MaxErrorText, "MaxLogLine": proto.MaxLogLine,
		"MaxBatch": proto.MaxBatch, "MaxOwed": proto.MaxOwed, "MaxHandlers": proto.MaxHandlers, "MaxName": proto.MaxName,
		"MaxLabels": proto.MaxLabels, "MaxLabelKey": proto.MaxLabelKey, "MaxEmails": proto.MaxEmails, "MaxEmail": proto.MaxEmail, "MaxWebhook": proto.MaxWebhook,
		"MaxProgressText": proto.MaxProgressText, "MaxStep": proto.MaxStep, "MaxSteps": proto.MaxSteps, "MaxStepsBytes": proto.MaxStepsBytes,
		"HelloTimeout": proto.HelloTimeout, "FirstByteTimeout": proto.FirstByteTimeout, "HeartbeatInterval": proto.HeartbeatInterval,
		"HeartbeatTimeout": proto.HeartbeatTimeout, "LeaseTTL": proto.LeaseTTL, "SelfFence": proto.SelfFence,
		"AcceptTTL": proto.AcceptTTL, "OfferTTL": proto.OfferTTL, "OfferGood": proto.OfferGood,
		"WriteTimeout": proto.WriteTimeout,
	} {
		if d, ok := value.(time.Duration); ok {
			value = d.Milliseconds()
		}
		row := fmt.Sprintf("| %s | %v |", name, value)
		require.True(t, strings.Contains(text, row), "SPEC.md lacks %q", row)
	}
	require.True(t, strings.Contains(text, hexDump([]byte(proto.Preface))), "SPEC.md lacks the preface")
}

// The specification's example is what the code writes.
func TestSpecExampleOfAHello(t *testing.T) {
	data, err := proto.AppendFrame([]byte(proto.Preface), &proto.ClientHello{
		MinVersion: 1, MaxVersion: 1, JoinToken: "cjt_x", Executor: "shop",
		BootId: "000102030405060708090a0b0c0d0e0f", Purpose: proto.Purpose_PURPOSE_CONTROL, Client: "spec/1",
	}, proto.MaxHello)
	require.NoError(t, err)
	example := hexRows(data)
	require.True(t, strings.Contains(spec(t), example), "SPEC.md lacks the example:\n%s", example)
}

// The specification's example of a message is what the library writes.
func TestSpecExampleOfAnAnswer(t *testing.T) {
	data, err := gproto.Marshal(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{
		Answers: []*proto.Answer{{ExecutionId: 300, Fence: 2, Accepted: true}},
	}}})
	require.NoError(t, err)
	require.True(t, strings.Contains(spec(t), hexDump(data)), "SPEC.md lacks %s", hexDump(data))
}

// The specification's example of what is signed is what the code signs.
func TestSpecExampleOfASignedScript(t *testing.T) {
	sum := sha256.Sum256([]byte("echo hi\n"))
	message := proto.ScriptMessage(1, 2, 3, "shell", sum[:])
	require.True(t, strings.Contains(spec(t), hexRows(message)), "SPEC.md lacks the example:\n%s", hexRows(message))
}

// Who reads the specification learns of every field of every message.
func TestSpecNamesEveryField(t *testing.T) {
	text := spec(t)
	messages := proto.File_carillon_proto.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			if f.ContainingOneof() != nil {
				continue // bodies: named as messages
			}
			require.True(t, regexp.MustCompile(`\b`+string(f.Name())+`\b`).MatchString(text), "SPEC.md does not name %s.%s", m.Name(), f.Name())
		}
	}
}

func hexRows(data []byte) string {
	var rows []string
	for len(data) > 0 {
		n := min(16, len(data))
		rows = append(rows, hexDump(data[:n]))
		data = data[n:]
	}
	return strings.Join(rows, "\n")
}

func hexDump(data []byte) string {
	return strings.TrimSpace(regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString(data), "$0 "))
}

// Every value of the enums that the exchanges turn on is explained.
func TestSpecExplainsEveryEnumValue(t *testing.T) {
	text := spec(t)
	for _, names := range []map[int32]string{proto.Outcome_name, proto.Verdict_name, proto.AttemptPhase_name, proto.Purpose_name} {
		for number, name := range names {
			if number == 0 {
				continue
			}
			for _, prefix := range []string{"OUTCOME_", "VERDICT_", "ATTEMPT_PHASE_", "PURPOSE_"} {
				name = strings.TrimPrefix(name, prefix)
			}
			require.True(t, strings.Contains(text, name), "SPEC.md does not explain %s", name)
		}
	}
}
