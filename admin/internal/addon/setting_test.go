package addon

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A setting has its default until it is given, and an add-on judges its own.
func TestSettingsAreComplete(t *testing.T) {
	t.Parallel()
	all := []AddOn{
		{Name: "bell", Settings: []Setting{{Name: "tone", Default: "low"}, {Name: "towers", Kind: List}}},
		{Name: "clock", Settings: []Setting{{Name: "face", Default: "round"}, {Name: "hour", Kind: Number, Default: "12"}, {Name: "swing", Kind: Duration}}, Check: func(v Values) error {
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
		{"nothing is given", nil, Values{"tone": {"low"}, "towers": nil, "face": {"round"}, "hour": {"12"}, "swing": {""}}, ""},
		{"an empty value is not given", Values{"tone": {""}}, Values{"tone": {"low"}, "towers": nil, "face": {"round"}, "hour": {"12"}, "swing": {""}}, ""},
		{"values are given", Values{"tone": {"high"}, "towers": {"a", "b"}}, Values{"tone": {"high"}, "towers": {"a", "b"}, "face": {"round"}, "hour": {"12"}, "swing": {""}}, ""},
		{"several values of one", Values{"tone": {"a", "b"}}, nil, "tone: "},
		{"a number and a duration", Values{"hour": {"3"}, "swing": {"2s"}}, Values{"tone": {"low"}, "towers": nil, "face": {"round"}, "hour": {"3"}, "swing": {"2s"}}, ""},
		{"no number", Values{"hour": {"noon"}}, nil, `hour: invalid value "noon"`},
		{"no duration", Values{"swing": {"2"}}, nil, `swing: invalid value "2"`},
		{"a refused value", Values{"face": {"square"}}, nil, "face: it has to be round"},
		{"a setting of no add-on", Values{"tune": {"x"}}, nil, `invalid setting "tune" of add-ons: use one of face, hour, swing, tone, towers`},
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
			require.Equal(t, test.want["hour"][0], strconv.Itoa(got.Number("hour")))
			require.Equal(t, len(test.given["swing"]) > 0, got.Duration("swing") == 2*time.Second)
		})
	}
}
