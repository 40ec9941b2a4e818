module github.com/carillon-sched/carillon/executor-sdk/tracing

go 1.25.0

require (
	github.com/carillon-sched/carillon/executor-sdk v0.0.0
	github.com/carillon-sched/carillon/proto v0.0.0
	go.opentelemetry.io/otel v1.46.0
	go.opentelemetry.io/otel/trace v1.46.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/metric v1.46.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.47.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

// Tests only.
require (
	github.com/stretchr/testify v1.12.1
	go.opentelemetry.io/otel/sdk v1.46.0
)
