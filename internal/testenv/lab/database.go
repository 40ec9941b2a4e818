package lab

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/go-sql-driver/mysql"
)

// Server is a MariaDB or MySQL of our own: its DSN is that of a user who may do
// everything, without a database (testenv.Server).
type Server interface{ DSN() string }

// Database is one database on a private server.
type Database struct {
	Server Server
	Name   string
}

var plainName = regexp.MustCompile(`^[a-z0-9_]+$`)

// CreateDatabase makes an empty database. Its name is made of small letters,
// digits and underscores.
func CreateDatabase(ctx context.Context, server Server, name string) (*Database, error) {
	if !plainName.MatchString(name) {
		return nil, fmt.Errorf("database name %q", name)
	}
	d := &Database{server, name}
	err := d.root(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	return d, err
}

// User makes a user who may do everything in this database and nothing else,
// as an admin node's user in production: read_only and max_connections hold
// for it. It returns a data source name; addr replaces the server's own
// address (a proxy's) unless it is empty.
func (d *Database) User(ctx context.Context, user, addr string) (string, error) {
	config, err := mysql.ParseDSN(d.Server.DSN())
	if err != nil {
		return "", err
	}
	if !plainName.MatchString(user) {
		return "", fmt.Errorf("user name %q", user)
	}
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s'", user, config.Passwd), // from anywhere: members of clusters have addresses of their own
		fmt.Sprintf("GRANT ALL PRIVILEGES ON %s.* TO %s", d.Name, user),
	} {
		if err := d.root(ctx, statement); err != nil {
			return "", err
		}
	}
	config.User, config.DBName = user, d.Name
	if addr != "" {
		config.Addr = addr
	}
	return config.FormatDSN(), nil
}

// Open opens the database as the server's own user, who may do everything.
func (d *Database) Open() (*sql.DB, error) {
	config, err := mysql.ParseDSN(d.Server.DSN())
	if err != nil {
		return nil, err
	}
	config.DBName, config.Logger = d.Name, &mysql.NopLogger{} // broken connections are what we ask for
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (d *Database) root(ctx context.Context, statement string) error {
	db, err := sql.Open("mysql", d.Server.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}
