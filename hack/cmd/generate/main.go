// Command generate generates files from the Go types of the API: deep copy methods, CustomResourceDefinitions, and the
// configuration of kube-state-metrics.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/hack/generate"
	"sigs.k8s.io/cluster-api/hack/statemetrics"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	changed, err := generate.Run(root)
	if err == nil {
		var more []string
		more, err = statemetrics.Write(root)
		changed = append(changed, more...)
	}
	for _, path := range changed {
		fmt.Println(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
