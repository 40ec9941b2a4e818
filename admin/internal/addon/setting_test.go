package addon

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A setting has its default until it is given, and an add-on judges its own.
func TestSettingsAreComplete(t *testing.T) {
	t.Parallel()
	all := []AddOn{
		{Name: "bell", Settings: []Setting{{Name: "tone", Default: "low"}, {Name: "towers", List: true}}},
		{Name: "clock", Settings: []Setting{{Name: "face", Default: "round"}}, Check: func(v Values) error {
			if v.Text("face") != "round" {
				return errors.New("face: it has to be round")
			}
			return nil
		}},
	}
	for _, test := range []struct {
		name  string
		given Values
		want  Values
		err   string
	}{
		{"nothing is given", nil, Values{"tone": {"low"}, "towers": nil, "face": {"round"}}, ""},
		{"an empty value is not given", Values{"tone": {""}}, Values{"tone": {"low"}, "towers": nil, "face": {"round"}}, ""},
		{"values are given", Values{"tone": {"high"}, "towers": {"a", "b"}}, Values{"tone": {"high"}, "towers": {"a", "b"}, "face": {"round"}}, ""},
		{"several values of one", Values{"tone": {"a", "b"}}, nil, "tone: "},
		{"a refused value", Values{"face": {"square"}}, nil, "face: it has to be round"},
		{"a setting of no add-on", Values{"tune": {"x"}}, nil, `invalid setting "tune" of add-ons: use one of face, tone, towers`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Complete(all, test.given)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.want["tone"][0], got.Text("tone"))
			require.Equal(t, test.want["towers"], got.List("towers"))
		})
	}
}
