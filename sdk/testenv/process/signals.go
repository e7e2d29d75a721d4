//go:build !windows

package process

import "syscall"

const (
	suspend = syscall.SIGSTOP
	resume  = syscall.SIGCONT
)
