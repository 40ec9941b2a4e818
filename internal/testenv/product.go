package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvProduct names the environment variable with the product that tests start
// for themselves: mariadb, which is the default, or mysql.
const EnvProduct = "CARILLON_TEST_MYSQL_PRODUCT"

// Product is a database server that tests can start.
type Product string

// The products.
const (
	MariaDB Product = "mariadb"
	MySQL   Product = "mysql"
)

// Chosen is the product that EnvProduct names.
func Chosen() Product {
	if name := os.Getenv(EnvProduct); name != "" {
		return Product(name)
	}
	return MariaDB
}

// program is how a product's server is run on this machine.
type program struct {
	product Product
	argv    []string // the server, after what loads it
	paths   []string // arguments that say where its files are
}

// find looks for the product's server on this machine.
func (p Product) find() (program, error) {
	switch p {
	case MariaDB:
		path, err := findProgram("mariadbd")
		if err != nil {
			return program{}, fmt.Errorf("%w (%w)", errNoMariaDB, err)
		}
		return program{product: p, argv: []string{path}}, nil
	case MySQL:
		return findMySQL()
	default:
		return program{}, fmt.Errorf("%s is %s or %s, not %q", EnvProduct, MariaDB, MySQL, string(p))
	}
}

// command runs the server with arguments.
func (p program) command(args ...string) []string {
	line := append([]string{}, p.argv...)
	line = append(line, "--no-defaults") // must be first: nothing of the machine's own server
	line = append(line, p.paths...)
	return append(line, args...)
}

// sbins are where distributions put servers; often not on a user's PATH.
var sbins = []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/bin"}

func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range sbins {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no " + name)
}
