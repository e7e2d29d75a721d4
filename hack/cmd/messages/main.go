// Command messages writes the texts that users of each component see to docs/messages.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/hack/messages"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	changed, err := messages.Write(root)
	for _, path := range changed {
		fmt.Println(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}
