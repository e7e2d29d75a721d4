// Package plugin finds and runs programs that add commands to clusterctl, by the rules kubectl has for its plugins.
//
// clusterctl's own commands are no matter of this package.
package plugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const prefix = "clusterctl-"

// Plugin is a program to run instead of a command.
type Plugin struct {
	Path string
	Args []string
}

// Find looks for the plugin that handles the arguments of a command line: of the words before the first flag as many as
// possible, joined by dashes, name the program; the rest are its arguments. Dashes within a word become underscores.
func Find(args []string, lookPath func(string) (string, error)) (Plugin, bool) {
	var words []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			break
		}
		words = append(words, strings.ReplaceAll(arg, "-", "_"))
	}
	for n := len(words); n > 0; n-- {
		if strings.ContainsRune(strings.Join(words[:n], ""), filepath.Separator) {
			continue
		}
		path, err := lookPath(prefix + strings.Join(words[:n], "-"))
		if err == nil {
			return Plugin{Path: path, Args: args[n:]}, true
		}
	}
	return Plugin{}, false
}

// Run replaces the process by the plugin; where that is impossible it runs the plugin and returns its result.
func (p Plugin) Run(environment []string) error {
	if runtime.GOOS != "windows" {
		return syscall.Exec(p.Path, append([]string{p.Path}, p.Args...), environment) //nolint:gosec // Running what the user asked for is the purpose.
	}
	cmd := exec.Command(p.Path, p.Args...) //nolint:gosec // As above.
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, environment
	return cmd.Run()
}

// LookPath finds programs on the user's PATH. Entries that are relative to the current directory do not count, as for
// exec.LookPath: a mistyped command would run whatever program lies in a folder that somebody else prepared.
func LookPath(file string) (string, error) {
	path, err := exec.LookPath(file)
	if errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("%s is not run: PATH names its folder relative to the current directory: %w", path, err)
	}
	return path, err
}
