package main

import (
	"github.com/carillon-sched/carillon/internal/faults/proxy"
)

// databasePaths puts a proxy between each admin node and the database. The
// slice is filled when the stage opens.
func (s *stage) databasePaths(admins int, commits *proxy.CommitCutter) ([]*proxy.Proxy, func(int, string) (string, error)) {
	paths := make([]*proxy.Proxy, admins)
	return paths, func(i int, addr string) (string, error) {
		p, err := proxy.New(addr, proxy.Options{Commits: commits})
		if err != nil {
			return "", err
		}
		s.defers(p.Close)
		paths[i] = p
		return p.Addr(), nil
	}
}
