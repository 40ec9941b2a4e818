package spelling

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		n         int
		one, many string
		want      string
	}{
		{0, "job", "", "0 jobs"}, {1, "job", "", "1 job"}, {2, "job", "", "2 jobs"}, {2, "entry", "", "2 entries"}, {2, "day", "", "2 days"},
		{3, "match", "", "3 matches"}, {2, "alias", "", "2 aliases"}, {1, "is", "are", "1 is"}, {0, "is", "are", "0 are"},
		{1, "document joins", "documents join", "1 document joins"}, {-1, "byte", "", "-1 bytes"},
	} {
		require.Equal(t, tt.want, Count(tt.n, tt.one, tt.many))
	}
}
