// Command house checks the rules of this repository that general linters do not have, and the versions in its modules. It
// exits with 1 on findings.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory. With --update before it, it
// writes the present numbers of violations to house.Ratchet instead.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/house"
)

func main() {
	update := flag.Bool("update", false, "write the numbers of known violations")
	flag.Parse()
	root := cmp.Or(flag.Arg(0), "..")
	if *update {
		if err := write(root); err != nil {
			fmt.Fprintln(os.Stderr, "house:", err)
			os.Exit(2)
		}
		return
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

// write writes house.Ratchet.
func write(root string) error {
	known, err := house.Known(os.DirFS(root))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, house.Ratchet), known, 0o600)
}

// check prints all findings, and reports whether there are any.
func check(tree fs.FS) (bool, error) {
	lengths, err := house.Check(tree)
	if err != nil {
		return false, err
	}
	// The tools are built separately, with their own dependencies.
	versions, err := house.CheckModules(tree, "hack/tools")
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
