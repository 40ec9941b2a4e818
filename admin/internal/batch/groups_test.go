package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/batch"
)

func TestGroupsKeepTheOrder(t *testing.T) {
	var g batch.Groups[string, int]
	g.Add("b", 1)
	g.Add("a", 2)
	g.Add("b", 0)
	require.Equal(t, batch.Groups[string, int]{{Key: "b", Items: []int{1, 0}}, {Key: "a", Items: []int{2}}}, g)
}
