//go:build !windows

package lock

import (
	"errors"
	"syscall"
)

// isRunning reports whether a process of this machine is running, or may be.
func isRunning(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
