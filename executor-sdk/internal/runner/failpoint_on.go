//go:build failpoints

package runner

import "github.com/carillon-sched/carillon/proto/failpoint"

func hitPoint(name string) { failpoint.Hit(name) }
