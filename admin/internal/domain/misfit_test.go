package domain

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// An error of the JSON reader becomes a message in plain words.
func TestMisfit(t *testing.T) {
	type spec struct {
		Name  string
		Most  int
		Share float32
		On    bool
		List  []string
		In    struct{ Delay int64 }
	}
	for text, want := range map[string]string{
		`{"Name":3}`:             "body.spec.Name: must be a text, not a number",
		`{"Most":"3"}`:           "body.spec.Most: must be a whole number that is not too large, not a text",
		`{"Most":1.5}`:           "body.spec.Most: must be a whole number that is not too large, not 1.5",
		`{"Share":"x"}`:          "body.spec.Share: must be a number that is not too large, not a text",
		`{"On":[]}`:              "body.spec.On: must be true or false, not a list",
		`{"List":{}}`:            "body.spec.List: must be a list, not an object",
		`{"In":true}`:            "body.spec.In: must be an object with fields, not true or false",
		`{"In":{"Delay":1e400}}`: "body.spec.In.Delay: must be a whole number that is not too large, not 1e400",
		`[]`:                     "body.spec: must be an object with fields, not a list",
		`{`:                      "body.spec: cannot be read: unexpected end of JSON input",
	} {
		err := Misfit("body.spec", json.Unmarshal([]byte(text), new(spec)))
		require.Equal(t, want, err.Message, text)
		require.Equal(t, CodeInvalid, err.Code)
		require.NotContains(t, err.Message, "Go ")
	}
}
