// Command house checks the rules of this repository that general linters do not have, and exits with 1 on findings.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/cluster-api/hack/house"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	findings, err := house.Check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}
