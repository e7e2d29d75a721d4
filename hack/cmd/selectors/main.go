// Command selectors adds the objectSelector of webhooks to the manifests that controller-gen has written. Its argument is the root of the
// repository.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/hack/selectors"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := selectors.Write(root); err != nil {
		fmt.Fprintln(os.Stderr, "selectors:", err)
		os.Exit(1)
	}
}
