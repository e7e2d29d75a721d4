//go:build !linux

package journey

import "syscall"

// dieWithParent is not supported: if the test binary is killed, the program continues to run.
func dieWithParent() *syscall.SysProcAttr { return nil }
