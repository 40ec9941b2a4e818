module github.com/carillon-sched/carillon/executor-sdk/simulate

go 1.25.0

require github.com/carillon-sched/carillon/executor-sdk v0.0.0

require (
	github.com/carillon-sched/carillon/proto v0.0.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
