module github.com/carillon-sched/carillon/executor-sdk/generate

go 1.25.0

require github.com/carillon-sched/carillon/proto v0.0.0

// Tests only.
require (
	github.com/carillon-sched/carillon/executor-sdk v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/carillon-sched/carillon/schedule v0.0.0 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
