// Command generate generates files from the source, which it parses without compiling it: packages of aliases, deep copy
// methods, CustomResourceDefinitions, roles of users, the configuration of kube-state-metrics, the texts that users of each component
// see, the exported API of the SDK, and the pictures of the book.
//
// It takes the root of the repository as its only, optional argument; the default is the parent directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/aliases"
	"sigs.k8s.io/cluster-api/hack/generate"
	"sigs.k8s.io/cluster-api/hack/messages"
	"sigs.k8s.io/cluster-api/hack/pictures"
	"sigs.k8s.io/cluster-api/hack/statemetrics"
	"sigs.k8s.io/cluster-api/hack/surface"
	"sigs.k8s.io/cluster-api/hack/userroles"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	// Deep copies need the aliases, and the configuration of kube-state-metrics and roles need the CustomResourceDefinitions.
	for _, write := range []func(root string) ([]string, error){
		aliases.Write, aliases.WriteModule, generate.Run, statemetrics.Write, userroles.Write, messages.Write, api, pictures.Write,
	} {
		changed, err := write(root)
		for _, path := range changed {
			fmt.Println(path)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

// api writes the exported API of the SDK.
func api(root string) ([]string, error) {
	dir := filepath.Join(root, "sdk")
	changed, err := surface.Write(dir)
	if !changed {
		return nil, err
	}
	return []string{filepath.Join(dir, surface.File)}, err
}
