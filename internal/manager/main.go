package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/component-base/logs"

	"sigs.k8s.io/cluster-api/internal/crash"
)

// Main is the whole main function of a component's program: it runs the component with the process's arguments until
// SIGTERM or SIGINT, and exits 1 after one line on stderr that says what was wrong. A second signal ends the process
// at once.
func Main(c Component) {
	crash.Contain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := Run(ctx, c, os.Args[1:], Host{})
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}
