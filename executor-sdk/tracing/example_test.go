package tracing_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/tracing"
)

// The first interceptor, so that what the others do is within its span.
func ExampleInterceptor() {
	ex, err := executor.New(executor.Config{Name: "shop", Addresses: []string{"127.0.0.1:7070"}, Token: "cjt_…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := sdktrace.NewTracerProvider() // with an exporter, and usually otel.SetTracerProvider
	ex.Use(tracing.Interceptor(tracing.WithTracerProvider(provider)))
	fmt.Println(provider.Shutdown(context.Background()))
	// Output: <nil>
}
