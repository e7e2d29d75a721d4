// Command casts records the terminals that the book shows, on a management cluster that it starts for that. It needs capi and clusterctl in
// bin/, and providers in out/repository: make build release.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/hack/casts"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := casts.Write(context.Background(), root); err != nil {
		fmt.Fprintln(os.Stderr, "casts:", err)
		os.Exit(1)
	}
}
