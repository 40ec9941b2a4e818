package generate_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carillon-sched/carillon/executor-sdk/generate"
)

const orders = `package shop

import "context"

//carillon:timer proxy=../shopclient
type Orders struct{}

//carillon:clock name=close-day cron="0 0 2 * * *" zone=Asia/Shanghai retries=3 max-result=1KiB
func (o *Orders) CloseDay(ctx context.Context) error { return nil }
`

// What carillon generate does with a folder.
func ExampleRun() {
	root, err := os.MkdirTemp("", "shop")
	if err == nil {
		defer func() { _ = os.RemoveAll(root) }()
		err = os.Mkdir(filepath.Join(root, "shop"), 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "shop", "orders.go"), []byte(orders), 0o600)
	}
	var told bytes.Buffer
	if err == nil {
		err = generate.Run([]string{filepath.Join(root, "shop")}, false, generate.Options{}, &told)
	}
	fmt.Print(err, "\n", string(bytes.ReplaceAll(told.Bytes(), []byte(root+"/"), nil)))
	// Output:
	// <nil>
	// wrote shop/carillon_gen.go
	// wrote shop/carillon_manifest.json
	// wrote shopclient/carillon_client.go
}
