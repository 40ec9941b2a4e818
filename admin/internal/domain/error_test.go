package domain

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorCodes(t *testing.T) {
	cause := Errorf(CodeUnavailable, "claim due triggers: %w", io.ErrUnexpectedEOF)
	for _, row := range []struct {
		name string
		err  error
		want Code
	}{
		{"none", nil, ""},
		{"foreign", io.EOF, CodeInternal},
		{"own", Errorf(CodeConflict, "the name is taken"), CodeConflict},
		{"wrapped", fmt.Errorf("start: %w", Errorf(CodeConflict, "the name is taken")), CodeConflict},
		{"joined", errors.Join(io.EOF, Errorf(CodeDenied, "no")), CodeDenied},
		{"outermost wins", Errorf(CodeNotFound, "job: %w", cause), CodeNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, CodeOf(row.err))
			require.Equal(t, row.err != nil, Is(row.err, row.want))
			require.False(t, Is(row.err, "another code"))
		})
	}
	require.ErrorIs(t, cause, io.ErrUnexpectedEOF)
	require.Equal(t, "claim due triggers: unexpected EOF", cause.Error())
	require.False(t, Is(nil, ""))
}

func TestInvalid(t *testing.T) {
	err := Invalid("body.schedule.expr", "%d fields, want 5 or 6", 3)
	require.Equal(t, CodeInvalid, err.Code)
	require.Equal(t, "body.schedule.expr: 3 fields, want 5 or 6", err.Error())
	require.Equal(t, []FieldError{{Location: "body.schedule.expr", Message: "3 fields, want 5 or 6", Position: -1}}, err.Fields)
}

// An error may have two causes: what failed, and what looking after it met.
func TestErrorfKeepsAllCauses(t *testing.T) {
	first, second := errors.New("the commit broke"), errors.New("nobody answers")
	err := Errorf(CodeUnavailable, "offer: %w: %w", first, second)
	require.ErrorIs(t, err, first)
	require.ErrorIs(t, err, second)
	require.Equal(t, "offer: the commit broke: nobody answers", err.Error())
	require.ErrorIs(t, Errorf(CodeUnavailable, "offer: %w", first), first)
	require.NoError(t, errors.Unwrap(Errorf(CodeUnavailable, "offer")))
}
