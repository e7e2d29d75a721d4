// Command capi is a Cluster API management cluster in one program.
package main

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/standalone"
	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

func main() {
	if err := command.New(standalone.Components()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "capi: "+err.Error())
		os.Exit(1)
	}
}
