module github.com/carillon-sched/carillon/executor-sdk

go 1.25.0

require (
	github.com/carillon-sched/carillon/proto v0.0.0
	github.com/carillon-sched/carillon/schedule v0.0.0
	github.com/hashicorp/yamux v0.1.2
	google.golang.org/protobuf v1.36.12
)

// Tests only.
require (
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)
