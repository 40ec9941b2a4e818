package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Cluster is what admin nodes of one database share. Fill in Dir, Binary and
// Database, and let NewCluster make the secrets.
type Cluster struct {
	Dir      string // data and logs of all processes
	Binary   string // carillon
	Database string // as --database takes it
	Password string // of the administrator
	sealing  string // file
}

// NewCluster makes the secrets of a new cluster.
func NewCluster(dir, binary, database string) (*Cluster, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Binary: binary, Database: database, sealing: filepath.Join(dir, "sealing.key")}
	if err := os.WriteFile(c.sealing, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return nil, err
	}
	if _, err := rand.Read(secret[:12]); err != nil {
		return nil, err
	}
	c.Password = hex.EncodeToString(secret[:12])
	return c, nil
}

// Admin is one node, which may be ended and started again at its addresses.
type Admin struct {
	*API
	*Process         // nil until Start
	Executors string // address that executors dial
	cluster   *Cluster
	name      string
	args      []string
	env       []string
}

// NewAdmin chooses the addresses of a node; extra are further flags of
// `carillon server`. Start starts it.
func (c *Cluster) NewAdmin(name string, extra ...string) (*Admin, error) {
	ui, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	wire, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	return &Admin{
		API: &API{Base: "http://" + ui}, Executors: wire, cluster: c, name: name,
		args: append([]string{
			"server", "--data", filepath.Join(c.Dir, name), "--node", name, "--http", ui, "--executors", wire,
		}, extra...),
		// Secrets are no arguments: those are seen by every user of the machine.
		env: []string{
			"CARILLON_ADMIN_PASSWORD=" + c.Password, "CARILLON_DATABASE=" + c.Database, "CARILLON_SEALING_KEY_FILE=" + c.sealing,
		},
	}, nil
}

// Start starts the node, the first time or again, and waits until it serves.
func (a *Admin) Start(ctx context.Context) (err error) {
	if a.Process, err = Start(a.cluster.Dir, a.name, a.env, a.cluster.Binary, a.args...); err != nil {
		return err
	}
	if err := a.Ready(ctx); err != nil {
		return fmt.Errorf("%w (see %s)", err, filepath.Join(a.cluster.Dir, a.name+".log"))
	}
	return nil
}
