package main

import (
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// executorPaths puts a proxy between the executors and each admin node. The
// slice is filled when the stage opens.
func (s *stage) executorPaths(admins int) ([]*proxy.Proxy, func(int, string) (string, error)) {
	paths := make([]*proxy.Proxy, admins)
	return paths, func(i int, listens string) (string, error) {
		p, err := proxy.New(listens, proxy.Options{})
		if err != nil {
			return "", err
		}
		s.defers(p.Close)
		paths[i] = p
		return p.Addr(), nil
	}
}

// databasePaths puts a proxy between each admin node and the database. The
// slice is filled when the stage opens. commits returns what looks at the
// commits of admin i; may be nil.
func (s *stage) databasePaths(admins int, commits func(i int) *proxy.CommitCutter) ([]*proxy.Proxy, func(int, string) (string, error)) {
	paths := make([]*proxy.Proxy, admins)
	return paths, func(i int, addr string) (string, error) {
		var o proxy.Options
		if commits != nil {
			o.Commits = commits(i)
		}
		p, err := proxy.New(addr, o)
		if err != nil {
			return "", err
		}
		s.defers(p.Close)
		paths[i] = p
		return p.Addr(), nil
	}
}
