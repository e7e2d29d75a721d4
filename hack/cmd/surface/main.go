// Command surface writes the exported API of modules to API.txt in their folders.
//
// Its arguments are the folders.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/surface"
)

func main() {
	for _, dir := range os.Args[1:] {
		changed, err := surface.Write(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "surface:", err)
			os.Exit(1)
		}
		if changed {
			fmt.Println(filepath.Join(dir, surface.File))
		}
	}
}
