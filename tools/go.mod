module github.com/carillon-sched/carillon/tools

go 1.26.0
