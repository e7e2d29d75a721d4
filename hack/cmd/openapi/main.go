// Command openapi writes the OpenAPI documents of the runtime hooks into release/files of the repository in its argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/openapi"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the root of the repository as argument, got %q", args)
	}
	documents, err := openapi.Generate(args[0])
	if err != nil {
		return err
	}
	for name, content := range documents {
		if err := os.WriteFile(filepath.Join(args[0], "release", "files", name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
