// Command house checks the rules of this repository that general linters do not have, and the versions in its modules. It
// exits with 1 on findings.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/cluster-api/hack/house"
	"sigs.k8s.io/cluster-api/hack/modules"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	broken, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	if broken {
		os.Exit(1)
	}
}

// check prints all findings, and reports whether there are any.
func check(tree fs.FS) (bool, error) {
	lengths, err := house.Check(tree)
	if err != nil {
		return false, err
	}
	// The tools are built separately, with their own dependencies.
	versions, err := modules.Check(tree, "hack/tools")
	if err != nil {
		return false, err
	}
	for _, finding := range lengths {
		fmt.Println(finding)
	}
	for _, finding := range versions {
		fmt.Println(finding)
	}
	return len(lengths)+len(versions) > 0, nil
}
