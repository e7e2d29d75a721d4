// Command openapi writes the OpenAPI document of the runtime hooks into release/files of the repository in its argument.
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
	document, err := openapi.Generate(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "release", "files", openapi.File), document, 0o600)
}
