// Command runc-bounded is runc for machines without some capability, such as virtual machines that lack CAP_SYS_RESOURCE.
//
// Docker requests every capability for a privileged container, and runc fails if the kernel does not grant one of them. This
// program removes from the request what no process of the machine can have, and then executes runc with the same arguments.
// It is registered as a runtime of dockerd (hack/docker.sh). Nothing in the product depends on it.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc-bounded:", err)
		os.Exit(1)
	}
}

// run only returns if runc cannot be executed.
func run(args []string) error {
	if path, isProcess := requested(args); path != "" {
		l, err := machineLimits()
		if err != nil {
			return err
		}
		if err := l.applyTo(path, isProcess); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("cannot find runc: %w", err)
	}
	err = syscall.Exec(runc, append([]string{runc}, args...), os.Environ()) //nolint:gosec // the arguments are those of runc
	return fmt.Errorf("cannot execute %s: %w", runc, err)
}

// requested returns the file with what a command of runc requests: the container's config.json, or the process that exec
// starts in it. Other commands request nothing.
func requested(args []string) (path string, isProcess bool) {
	command, bundle, process := "", ".", ""
	for i, arg := range args {
		name, value, hasValue := strings.Cut(arg, "=")
		if !hasValue && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "create", "run", "restore", "exec":
			if command == "" {
				command = name
			}
		case "--bundle", "-b":
			bundle = value
		case "--process", "-p":
			process = value
		}
	}
	switch command {
	case "":
		return "", false
	case "exec":
		return process, true
	}
	return filepath.Join(bundle, "config.json"), false
}
