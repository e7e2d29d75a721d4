//go:build !linux

package journey

import "syscall"

// dieWithParent has no equivalent here: a test binary that is killed leaves the program running.
func dieWithParent() *syscall.SysProcAttr { return nil }
