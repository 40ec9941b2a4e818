module github.com/carillon-sched/carillon/schedule

go 1.25.0

require github.com/robfig/cron/v3 v3.0.1

// Tests only.
require pgregory.net/rapid v1.3.0
