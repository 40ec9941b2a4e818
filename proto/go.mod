module github.com/carillon-sched/carillon/proto

go 1.25.0

require google.golang.org/protobuf v1.36.12

// Package schedule only.
require github.com/robfig/cron/v3 v3.0.1

// Tests only.
require (
	github.com/stretchr/testify v1.12.1
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
