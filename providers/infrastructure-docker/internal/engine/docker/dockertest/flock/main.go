// Program flock waits for an exclusive lock of an open file and keeps it, as "flock" of util-linux does with the number of a file
// descriptor. The busybox of Debian does not have it.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flock:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the number of a file descriptor, got %q", args)
	}
	descriptor, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for err = syscall.EINTR; err == syscall.EINTR; { //nolint:errorlint // It is a number.
		err = syscall.Flock(descriptor, syscall.LOCK_EX)
	}
	return err
}
