package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), "crc!"+text...)
}

func TestASessionIsTakenApartAndPutTogether(t *testing.T) {
	whole := &recording{
		hello: append([]byte("CARILLON\x00\x01"), framed("hello")...), register: framed("register"),
		control: [][]byte{framed("beat 1"), framed("beat 2")},
	}
	for i := range 20 {
		whole.commands = append(whole.commands, framed(fmt.Sprint("result ", i)))
	}
	said := whole.session(whole.control, whole.commands)
	got, err := understand(said)
	require.NoError(t, err)
	require.Equal(t, whole.hello, got.hello)
	require.Equal(t, whole.register, got.register)
	require.Equal(t, whole.control, got.control)
	require.Equal(t, whole.commands, got.commands)
	require.Equal(t, said, got.verbatim(nil))

	twice, err := understand(got.doubled(nil))
	require.NoError(t, err)
	require.Len(t, twice.commands, 40)
	require.Len(t, twice.control, 4)
	mixed, err := understand(got.shuffled(rand.New(rand.NewPCG(3, 4))))
	require.NoError(t, err)
	require.ElementsMatch(t, whole.commands, mixed.commands)
	require.NotEqual(t, whole.commands, mixed.commands)

	for cut := range said { // a recording may end anywhere
		if r, err := understand(said[:cut]); err == nil {
			require.Equal(t, whole.register, r.register)
		}
	}
	_, err = understand(append(whole.hello, framed("logs")...))
	require.ErrorIs(t, err, errNoSession)
}
