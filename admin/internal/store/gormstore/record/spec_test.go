package record

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A node that does not know callbacks to other places reads one as a handler that does not exist,
// and not as none. A handler of the own executor is stored as it always was.
func TestCallbacksForOlderNodes(t *testing.T) {
	elsewhere := domain.FollowUp{Handler: "http", Executor: 7, Request: `{"url":"https://x"}`}
	text, err := EncodeSpec(&domain.JobSpec{OnSuccess: elsewhere, OnFailure: domain.FollowUp{Handler: "told"}})
	require.NoError(t, err)
	var older struct{ OnSuccess, OnFailure string }
	require.NoError(t, json.Unmarshal([]byte(text), &older))
	require.Equal(t, "told", older.OnFailure)
	require.Equal(t, needsNewerNode, older.OnSuccess)
	require.Empty(t, domain.WrongName(older.OnSuccess, domain.MaxNameLength), "it is told as a handler")

	read, err := DecodeSpec([]byte(text))
	require.NoError(t, err)
	require.Equal(t, []domain.FollowUp{elsewhere, {Handler: "told"}}, []domain.FollowUp{read.OnSuccess, read.OnFailure})
}
