// Command licenses fails if a program of this repository links a module whose license is not allowed.
//
// Its only argument is the root of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/tools/license"
)

func main() {
	if err := run(context.Background(), os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// run checks the programs of all modules that have any.
func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: %s ROOT", args[0])
	}
	var packages []license.Package
	for _, module := range []string{".", "standalone"} {
		linked, err := license.Linked(ctx, filepath.Join(args[1], module), "./cmd/...")
		if err != nil {
			return err
		}
		packages = append(packages, linked...)
	}
	findings, err := policy().Check(packages)
	if err != nil {
		return err
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if len(findings) > 0 {
		return fmt.Errorf("%d licenses are not allowed", len(findings))
	}
	return nil
}

// policy allows permissive licenses, and MPL-2.0, which only requires programs to reference the source of unchanged files.
func policy() license.Policy {
	return license.Policy{
		Allowed: []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"},
		Read: map[string]string{
			"github.com/ajeddeloh/go-json -":                 "BSD-3-Clause", // a copy of encoding/json of Go, with its headers
			"github.com/davecgh/go-spew LICENSE":             "ISC",          // detected as 0BSD
			"github.com/russross/blackfriday/v2 LICENSE.txt": "BSD-2-Clause", // indented
			"github.com/tinylib/msgp LICENSE":                "MIT",          // with a line about portions of Go, which is BSD-3-Clause
		},
	}
}
