package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"k8s.io/component-base/logs"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Main is the main function of a component's program: it runs the component with the process's arguments until
// SIGTERM or SIGINT. After an error, it prints one line to stderr and exits with 1. A second signal ends the process
// immediately.
func Main(c Component) {
	failsafe.Contain()
	if limit := goMemoryLimit(os.Getenv); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := within(ctx, shutdownTimeout+time.Second, func() error { return Run(ctx, c, os.Args[1:], Host{}) })
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// within returns the result of run. After ctx is done it only waits until the timeout: not everything in run respects
// its context (for example, discovery with an unresponsive API server). The error then lists the running functions.
func within(ctx context.Context, timeout time.Duration, run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(timeout):
		running := &strings.Builder{}
		_ = pprof.Lookup("goroutine").WriteTo(running, 1) // It prints functions without arguments. Writing to a Builder does not fail.
		return fmt.Errorf("shutdown took longer than %s; still running: %s", timeout, running)
	}
}
