package domain

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSelectors(t *testing.T) {
	labels := map[string]string{"zone": "eu", "tier": "gold", "gpu": "", "path": "a/b.c_d-e", "中": "文"}
	for text, want := range map[string]bool{
		"":                                true,
		"  ":                              true,
		"zone=eu":                         true,
		"zone==eu":                        true,
		"zone = us":                       false,
		"zone!=us":                        true,
		"zone != eu":                      false,
		"nothing!=eu":                     true,
		"gpu":                             true,
		"gpu=":                            true,
		"spot":                            false,
		"!spot":                           true,
		"! gpu":                           false,
		"zone in (eu, us)":                true,
		"zone in(eu)":                     true,
		"zone in (us,cn)":                 false,
		"nothing in (eu)":                 false,
		"zone notin (us, cn)":             true,
		"zone notin (eu)":                 false,
		"nothing notin (eu)":              true,
		"zone=eu,tier=gold,gpu,!spot":     true,
		"zone=eu , tier in (silver)":      false,
		"path=a/b.c_d-e, 中=文":             true,
		"in in (x), notin":                false,
		"zone in (eu), tier notin (lead)": true,
	} {
		s, err := ParseSelector(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s.Matches(labels), text)
		require.Equal(t, want, s.Unmet(labels) == "", text)
	}
	s, err := ParseSelector(" zone=eu, tier in (silver, lead), !gpu ")
	require.NoError(t, err)
	require.Equal(t, "zone=eu, tier in (silver, lead), !gpu", s.String())
	require.Equal(t, "tier in (silver, lead)", s.Unmet(labels))
	require.True(t, s.Empty() == false && Selector{}.Empty())
}

func TestSelectorsThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"=eu":            `expected a label's name at character 1 of "=eu"`,
		"zone=eu tier=x": `expected a comma between two terms at character 9 of "zone=eu tier=x"`,
		"zone=eu,":       "",
		"zone=eu,,a":     `expected a label's name at character 9 of "zone=eu,,a"`,
		"!":              `expected a label's name at character 2 of "!"`,
		"zone in eu":     `expected a list such as (a, b) at character 9 of "zone in eu"`,
		"zone in (eu":    `expected a comma or the end of the list at character 12 of "zone in (eu"`,
		"zone in (e u)":  `expected a comma or the end of the list at character 12 of "zone in (e u)"`,
		"a\nb":           "must not contain control characters or line breaks",
		"a)":             `expected a comma between two terms at character 2 of "a)"`,
	} {
		_, err := ParseSelector(text)
		if want == "" {
			require.Error(t, err, text)
		} else {
			require.EqualError(t, err, want, text)
		}
	}
	_, err := ParseSelector(string(make([]byte, MaxSelector+1)))
	require.Error(t, err)
}

// FuzzSelector: whatever is accepted says the same when its terms are written
// out.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"zone=eu", "a in (b,c), !d", "x notin ()", "a!=b,c", "((", "in"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		written := ""
		for i := range s.terms {
			if i > 0 {
				written += ", "
			}
			written += s.terms[i].String()
		}
		again, err := ParseSelector(written)
		if len(written) > MaxSelector {
			return
		}
		require.NoError(t, err, "%q from %q", written, text)
		require.Equal(t, s.terms, again.terms, "%q from %q", written, text)
	})
}

func TestPointerValue(t *testing.T) {
	document := []byte(`{"customer":{"id":7,"name":"Ann","none":null,"tags":["a",{"b":true}]},"a/b":{"~":"tilde"},"":1,"n":1.50}`)
	for pointer, want := range map[string]string{
		"/customer/id": "7", "/customer/name": "Ann", "/customer/tags/0": "a", "/customer/tags/1/b": "true",
		"/a~1b/~0": "tilde", "/": "1", "/n": "1.50", "/customer/tags": `["a",{"b":true}]`,
	} {
		got, ok := PointerValue(document, pointer)
		require.True(t, ok, pointer)
		require.Equal(t, want, got, pointer)
	}
	for _, pointer := range []string{"/nobody", "/customer/none", "/customer/id/x", "/customer/tags/2", "/customer/tags/01", "/customer/tags/-1", "/customer/tags/-"} {
		_, ok := PointerValue(document, pointer)
		require.False(t, ok, pointer)
	}
	for _, broken := range []string{"", "{", "nothing"} {
		_, ok := PointerValue([]byte(broken), "/a")
		require.False(t, ok, broken)
		_, ok = PointerValue([]byte(broken), "")
		require.False(t, ok, broken)
	}
	spaced, ok := PointerValue([]byte(` {"a" : 1} `), "")
	require.True(t, ok)
	require.Equal(t, `{"a":1}`, spaced)
}

func TestRoutingSettingsAreChecked(t *testing.T) {
	fields := func(change func(*JobSpec)) (wrong []string) {
		s := JobSpec{
			Name: "n", Handler: "h", Routing: RouteConsistentHash, Blocking: BlockSerial, OnLost: OnLostAuto,
			Misfire: Misfire{Policy: MisfireSkip}, Retry: Retry{MaxAttempts: 1},
		}
		change(&s)
		var e *Error
		if errors.As(CheckSpec(&s), &e) {
			for _, f := range e.Fields {
				wrong = append(wrong, f.Location)
			}
		}
		return wrong
	}
	for _, r := range Routings {
		require.Empty(t, fields(func(s *JobSpec) { s.Routing = r }), r)
	}
	require.Empty(t, fields(func(s *JobSpec) { s.RoutingKey = "/a~1b/~0c" }))
	require.Equal(t, []string{"body.routing"}, fields(func(s *JobSpec) { s.Routing = "any" }))
	require.Equal(t, []string{"body.routingKey"}, fields(func(s *JobSpec) { s.Routing, s.RoutingKey = RouteRandom, "/a" }))
	for _, pointer := range []string{"a", "/a~", "/a~2b", "/" + string(make([]byte, MaxRoutingKey))} {
		require.Equal(t, []string{"body.routingKey"}, fields(func(s *JobSpec) { s.RoutingKey = pointer }), pointer)
	}
	require.Equal(t, []string{"body.sendRetry.maxSends", "body.sendRetry.delay", "body.sendRetry.maxDelay", "body.sendRetry.backoff"},
		fields(func(s *JobSpec) { s.SendRetry = SendRetry{MaxSends: -1, Delay: -1, MaxDelay: -1, Backoff: -1} }))
}
