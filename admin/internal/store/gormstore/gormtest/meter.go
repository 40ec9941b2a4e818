package gormtest

import (
	"bytes"
	"context"
	"database/sql/driver"
	"os"
	"strconv"
	"sync/atomic"
)

// Meter counts the bytes of texts and blobs that a database hands out.
type Meter struct {
	bytes atomic.Int64
	asked atomic.Pointer[func(query string, args []driver.NamedValue)]
}

// Ask has each query told from now on; nil: none.
func (m *Meter) Ask(asked func(query string, args []driver.NamedValue)) {
	if asked == nil {
		m.asked.Store(nil)
		return
	}
	m.asked.Store(&asked)
}

// Bytes is how many there have been.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Connector is for gormstore.Options.
func (m *Meter) Connector(c driver.Connector) driver.Connector { return meteredConnector{c, m} }

// FileBytes is how many bytes this process has read from files, if the system tells.
func FileBytes() (n int64, known bool) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		if value, is := bytes.CutPrefix(line, []byte("rchar: ")); is {
			n, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

type meteredConnector struct {
	driver.Connector
	m *Meter
}

func (c meteredConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return meteredConn{conn.(fullConn), c.m}, nil
}

// fullConn is what the driver's connections can do of what database/sql uses.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type meteredConn struct {
	fullConn
	m *Meter
}

func (c meteredConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if asked := c.m.asked.Load(); asked != nil {
		(*asked)(query, args)
	}
	rows, err := c.fullConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return meteredRows{rows, c.m}, nil
}

type meteredRows struct {
	driver.Rows
	m *Meter
}

func (r meteredRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil {
		return err
	}
	for _, v := range dest {
		switch v := v.(type) {
		case string:
			r.m.bytes.Add(int64(len(v)))
		case []byte:
			r.m.bytes.Add(int64(len(v)))
		}
	}
	return nil
}
