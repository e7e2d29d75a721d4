package root

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

const pluginPrefix = "clusterctl-"

// plugin is a program to run instead of a command.
type plugin struct {
	Path string
	Args []string
}

// lookUpPlugin looks for the plugin for a command line. Its name is the longest sequence of words before the first flag, joined
// by dashes, for which there is a program; the rest are its arguments. Dashes within a word become underscores.
func lookUpPlugin(args []string, lookPath func(string) (string, error)) (plugin, bool) {
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
		path, err := lookPath(pluginPrefix + strings.Join(words[:n], "-"))
		if err == nil {
			return plugin{Path: path, Args: args[n:]}, true
		}
	}
	return plugin{}, false
}

// Run replaces the process with the plugin; where that is not possible it runs the plugin and returns its result.
func (p plugin) Run(environment []string) error {
	if runtime.GOOS != "windows" {
		return syscall.Exec(p.Path, append([]string{p.Path}, p.Args...), environment) // Running what the user asked for is the purpose.
	}
	cmd := exec.Command(p.Path, p.Args...) //nolint:noctx // The plugin ends by itself.
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, environment
	return cmd.Run()
}

// lookPath finds programs in PATH. Like exec.LookPath it ignores entries that are relative to the current directory: a
// mistyped command could run a program in an untrusted folder.
func lookPath(file string) (string, error) {
	path, err := exec.LookPath(file)
	if errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("refusing to run %s, because its folder in PATH is relative to the current directory: %w", path, err)
	}
	return path, err
}
