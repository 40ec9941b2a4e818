package proto

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestJSONIsUTF8(t *testing.T) {
	gbk := []byte("{\"city\":\"\xb0\xd9\",\"n\":1}")
	require.True(t, json.Valid(gbk), "encoding/json does not look")
	require.False(t, ValidJSON(gbk))
	require.Equal(t, `{"city":"`+"\uFFFD"+`","n":1}`, string(CleanJSON(gbk)))
	raw, err := EncodeJSON(map[string]any{"raw": json.RawMessage(gbk), "text": "\xb0"})
	require.NoError(t, err)
	require.True(t, ValidJSON(raw), "%q", raw)
	require.False(t, ValidJSON([]byte("{")))
	require.True(t, ValidJSON([]byte(`"编钟"`)))
	require.Nil(t, CleanJSON(nil))
}

func FuzzCleanJSON(f *testing.F) {
	f.Add([]byte("{\"city\":\"\xb0\xd9\"}"))
	f.Add([]byte("\"\x81\x5c\""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean := CleanJSON(raw)
		require.True(t, utf8.Valid(clean))
		require.Equal(t, json.Valid(raw), ValidJSON(clean))
	})
}
