package nodehandler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	list := List{{Name: "publish"}, {Name: "mail"}}
	for name, want := range map[string]bool{"publish": true, "mail": true, "http": false, "": false} {
		h, is := list.Find(name)
		require.Equal(t, want, is, name)
		require.Equal(t, want, h.Name == name && is, name)
	}
}
