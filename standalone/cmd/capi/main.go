// Command capi is a Cluster API management cluster in one program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/standalone"
	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

func main() {
	err := command.New(standalone.Components(), standalone.Reference).ExecuteContext(context.Background())
	if status, ok := errors.AsType[command.StatusError](err); ok {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "capi: "+err.Error())
		os.Exit(1)
	}
}
