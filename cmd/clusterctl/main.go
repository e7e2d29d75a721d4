// Command clusterctl installs and operates Cluster API management clusters.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

func main() { os.Exit(factory.ExitCode(run())) }

// run reports errors to the user itself.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := factory.New(iostreams.System(factory.Environment), factory.Environment, nil)
	f.Program = clusterflags.Program(os.Args[0])
	return root.Run(ctx, f, root.Arguments(os.Args))
}
