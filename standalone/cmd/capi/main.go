// Command capi is a Cluster API management cluster in one program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sigs.k8s.io/cluster-api/standalone"
	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "capi: "+err.Error())
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly stop; from then on a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	return command.New(standalone.Components()).ExecuteContext(ctx)
}
