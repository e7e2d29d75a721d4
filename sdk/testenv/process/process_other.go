//go:build !linux

package process

import "syscall"

// dieWithParent has no equivalent on this system: if this process is killed, its programs keep running.
func dieWithParent() *syscall.SysProcAttr { return nil }
