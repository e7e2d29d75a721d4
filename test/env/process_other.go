//go:build !linux

package env

import "syscall"

// dieWithParent has no equivalent here: a test binary that is killed leaves its server running.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
