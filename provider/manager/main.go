package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"k8s.io/component-base/logs"

	"sigs.k8s.io/cluster-api/provider/crash"
)

// Main is the whole main function of a component's program: it runs the component with the process's arguments until
// SIGTERM or SIGINT, and exits 1 after one line on stderr that says what was wrong. A second signal ends the process
// at once.
func Main(c Component) {
	crash.Contain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := within(ctx, shutdownTimeout+time.Second, func() error { return Run(ctx, c, os.Args[1:], Host{}) })
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// within returns what run returns. After ctx is done it waits for that only so long: not everything that run may wait for heeds
// its context (the discovery of an API server that does not answer, for one). The error has the functions that still ran.
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
		_ = pprof.Lookup("goroutine").WriteTo(running, 1) // It names functions, not their arguments. A Builder takes everything.
		return fmt.Errorf("not stopped %s after it was told to, so it ends now; still running: %s", timeout, running)
	}
}
