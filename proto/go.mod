module github.com/carillon-sched/carillon/proto

go 1.25.0

require google.golang.org/protobuf v1.36.12

// Tests only.
require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect
