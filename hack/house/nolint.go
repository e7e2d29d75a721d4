package house

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Config is the file that lists the enabled linters.
const Config = ".golangci.yml"

// linters reads the names of the enabled linters; nil without a configuration.
func linters(tree fs.FS) ([]string, error) {
	raw, err := fs.ReadFile(tree, Config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var config struct {
		Linters struct {
			Enable []string `json:"enable"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", Config, err)
	}
	return config.Linters.Enable, nil
}

// directives reports nolint comments for linters that are not enabled. nolintlint does not report them.
func (c *checker) directives(f *ast.File) {
	for _, group := range f.Comments {
		for _, comment := range group.List {
			names, ok := strings.CutPrefix(comment.Text, "//nolint:")
			if !ok {
				continue
			}
			names, _, _ = strings.Cut(names, " ")
			for name := range strings.SplitSeq(names, ",") {
				if !slices.Contains(c.linters, name) {
					c.reportf(comment.Pos(), "nolint names %s, which is not enabled: remove it", name)
				}
			}
		}
	}
}
