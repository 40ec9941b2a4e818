package db

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A column of milliseconds comes as a number, or as the text of one.
func TestAt(t *testing.T) {
	for name, c := range map[string]struct {
		column any
		want   time.Time
	}{
		"number": {int64(1500), time.UnixMilli(1500).UTC()}, "text": {[]byte("1500"), time.UnixMilli(1500).UTC()}, "none": {int64(0), time.Time{}}, "null": {nil, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Now()
			require.NoError(t, At(&at).Scan(c.column))
			require.Equal(t, c.want, at)
		})
	}
	require.Error(t, At(new(time.Time)).Scan("soon"))
}
