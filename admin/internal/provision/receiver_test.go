package provision

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file is held against the settings that the node has of its own.
func TestAFileFitsTheNode(t *testing.T) {
	d := &Declaration{file: "p.yaml", adminPassword: "of the file", Receivers: []Receiver{{Line: 3, Where: "tenants[0].alertTo", Emails: []string{"a@other.example"}}}}
	fine, none := func([]string) error { return nil }, errors.New("no mails go there")
	got, err := d.Fits("", fine)
	require.NoError(t, err)
	require.Equal(t, "of the file", got)
	_, err = d.Fits("of the node", func([]string) error { return none })
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong.Problems, 2)
	require.ErrorContains(t, err, "p.yaml:3: tenants[0].alertTo: no mails go there")
	require.ErrorContains(t, err, "administrator.password: it is given")
	got, err = (&Declaration{}).Fits("of the node", fine)
	require.NoError(t, err)
	require.Equal(t, "of the node", got)
}
